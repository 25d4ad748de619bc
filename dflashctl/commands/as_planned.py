"""As planned: does the draft run as the plan says, by the server's own log line about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.engines import ENGINES

if TYPE_CHECKING:
    from dflashctl.core.findings import Finding
    from dflashctl.core.instance import InstanceRecord
    from dflashctl.core.plan import Plan


def start_differences(plan: Plan, record: InstanceRecord) -> tuple[Finding, ...]:
    """What really runs otherwise than planned (draft backend, block, window); nothing without speculation."""
    if not plan.speculation:
        return ()
    return ENGINES[plan.engine].differences(
        dict(record.facts),
        plan.arguments,
        block_size=plan.block_size,
        draft_window_size=plan.draft_window_size,
    )
