"""Between the plan and the start: weights, the plan made again with what their configs say, and the machine."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.doctor import before_start
from dflashctl.commands.ensure_weights import ensure_weights
from dflashctl.commands.planned import planned_to_start
from dflashctl.core.instance import Phase

if TYPE_CHECKING:
    from dflashctl.commands.planned import Planned
    from dflashctl.core.options import PlanRequest
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance

# What `fetch` says of a pair without an engine, and the engine's rule that says it of the plan.
_SAME = {"pair.block_size": "block_mismatch"}


def prepared(env: Env, request: PlanRequest, made: Planned, owned: OwnedInstance) -> Planned:
    """The plan that will run; raises what forbids the start, refusals that only now show are in plan.findings."""
    owned.enter(Phase.FETCHING, "the weights of target and draft")
    weights = ensure_weights(
        env, made.loaded, offline=request.offline, skip=request.skip_fetch, build=made.build
    )
    owned.enter(Phase.VERIFYING, "the plan against the models and this machine")
    again = planned_to_start(env, request)
    plan = again.plan
    doctor = () if request.skip_doctor else before_start(env, again, request)
    told = {f.id for f in plan.findings}
    fresh = tuple(f for f in weights.findings if _SAME.get(f.id) not in told)
    return replace(again, plan=replace(plan, findings=(*plan.findings, *fresh, *doctor)))
