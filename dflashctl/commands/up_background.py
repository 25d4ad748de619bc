"""Up in the background: start it, wait until it is proven, and say truly what goes on when somebody cuts in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.as_planned import start_differences
from dflashctl.commands.instance_profile import start_line
from dflashctl.commands.up_endings import failed, up_result
from dflashctl.commands.up_proofs import any_failed, prove_plan
from dflashctl.core.errors import ExitCode
from dflashctl.core.instance import ENDED, Phase
from dflashctl.core.report import ErrorInfo, Outcome, Report
from dflashctl.supervise import DetachedStart, result_of, undisturbed

if TYPE_CHECKING:
    from dflashctl.core.findings import Finding
    from dflashctl.core.plan import Plan
    from dflashctl.core.smoke import Proof
    from dflashctl.core.supervise_result import SuperviseResult
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance


def up_in_background(env: Env, plan: Plan, owned: OwnedInstance) -> Report:
    """Exit 0 when it is up and proven, 1 when a proof failed, 130 when the wait was cut short; else how the start ended."""
    with DetachedStart(env, plan) as start:
        try:
            start.begin(owned)
            start.wait()
            started = result_of(start)
            proofs = prove_plan(env, plan) if started.record.ready else ()
            if any_failed(proofs):
                started = result_of(start)  # was it stopped meanwhile, then that is all there is to say
        except KeyboardInterrupt:
            if not start.begun:
                raise
            with undisturbed():
                started = result_of(start)
            return _not_waited_for(
                env, plan, started, f"interrupted: {plan.name!r} goes on in the background"
            )
    return _up_now(plan, started, proofs) if _goes_on(started) else _not_waited_for(env, plan, started)


def _goes_on(started: SuperviseResult) -> bool:
    return started.left_running and started.record.phase not in (Phase.DRAINING, *ENDED)


def _up_now(plan: Plan, started: SuperviseResult, proofs: tuple[Proof, ...]) -> Report:
    """Exit 0 when the proofs passed; partial when it is not ready any more."""
    bad = any_failed(proofs)
    notes: tuple[Finding, ...] = ()
    steps: tuple[str, ...] = ("status --watch", f"down {plan.name}")
    if started.record.ready:
        steps = (f"status {plan.name}", f"bench {plan.name}", f"down {plan.name}")
        notes = start_differences(plan, started.record)
    return Report(
        command="up",
        data=up_result(started.record, plan, proofs=proofs),
        outcome=Outcome.OK if started.record.ready and not bad else Outcome.PARTIAL,
        exit_code=ExitCode.CHECK_FAILED if bad else ExitCode.OK,
        findings=(*plan.findings, *notes),
        next_steps=tuple(f"dflashctl {step}" for step in steps),
    )


def _not_waited_for(env: Env, plan: Plan, started: SuperviseResult, told: str = "") -> Report:
    """Exit 130: the user went away before it was known to be ready, or somebody stopped it meanwhile."""
    if started.exit_code is not ExitCode.OK:
        return failed(plan, started, ())
    if _goes_on(started):
        outcome, told = Outcome.PARTIAL, f"{told} ({started.record.phase.value})"
        steps: tuple[str, ...] = ("dflashctl status --watch", f"dflashctl down {plan.name}")
    else:
        outcome, told = Outcome.FAILED, f"{plan.name!r} was stopped before the start was done"
        steps = (start_line(env, plan.name) or f"dflashctl up {plan.profile}",)
    return Report(
        command="up",
        data=up_result(started.record, plan),
        outcome=outcome,
        exit_code=ExitCode.INTERRUPTED,
        findings=plan.findings,
        errors=(ErrorInfo(message=told, hint=steps[-1], exit_code=int(ExitCode.INTERRUPTED)),),
        next_steps=steps,
    )
