"""gpus_unreadable: GPUs that the driver counts but cannot open any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "gpus_unreadable"
NEEDS = ()
SOURCE = "NVML reports a GPU that fell off the bus (Xid 79) as lost; the others usually go on, until the next reboot"


def check(facts: Facts) -> Iterator[Finding]:
    """A plan that found its GPUs among the others can start, but nobody should trust such a machine."""
    lost = facts.machine.gpus_unreadable
    if lost and (facts.profile is None or facts.needs_gpus):
        count = f"{len(lost)} GPU{'s' if len(lost) > 1 else ''}"
        yield found(
            ID,
            Severity.WARNING if facts.needs_gpus and facts.plan and facts.plan.gpus else Severity.ERROR,
            f"the driver lists {count} that it cannot reach",
            detail="; ".join(lost),
            fix="take the work off this machine and reboot it; if the GPU stays lost, it needs service",
        )
