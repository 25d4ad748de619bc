"""A start in the background in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.supervise import DetachedStart, result_of

if TYPE_CHECKING:
    from dflashctl.core.plan import Plan
    from dflashctl.core.supervise_result import SuperviseResult
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance


def start_detached(
    plan: Plan, env: Env, *, owned: OwnedInstance | None = None, wait: bool = True
) -> SuperviseResult:
    """Start it and return once it is ready or has failed; `owned` hands its lock over."""
    with DetachedStart(env, plan) as start:
        start.begin(owned)
        if wait:
            start.wait()
        return result_of(start)
