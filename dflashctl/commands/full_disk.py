"""Full disk: what is known of instances may be old when no record can be written any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from dflashctl.env import Env


def full_disk(env: Env) -> tuple[Finding, ...]:
    """A warning when the state folder's disk is full; nothing else."""
    full = env.instances.full_folder()
    if full is None:
        return ()
    text = f"the state folder '{full}' is full: no space left on device, so what is shown may be old"
    return (
        Finding(
            id="state_full",
            severity=Severity.WARNING,
            summary=text,
            fix="make room there: records and logs go on by themselves",
        ),
    )
