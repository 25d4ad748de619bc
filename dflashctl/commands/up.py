"""`up`: plan, fetch, check, start, prove, and stay in front."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.as_planned import start_differences
from dflashctl.commands.drift import remember
from dflashctl.commands.planned import planned_to_start
from dflashctl.commands.prepared import prepared
from dflashctl.commands.up_background import up_in_background
from dflashctl.commands.up_endings import failed, refused, up_result
from dflashctl.commands.up_proofs import Proving, any_failed
from dflashctl.core.errors import Busy, DflashError, ExitCode
from dflashctl.core.instance import Phase, Reason
from dflashctl.core.report import Outcome, Report
from dflashctl.supervise import run, stop_raises

if TYPE_CHECKING:
    from dflashctl.commands.planned import Planned
    from dflashctl.core.options import PlanRequest
    from dflashctl.core.plan import Plan
    from dflashctl.core.smoke import Proof
    from dflashctl.core.supervise_result import SuperviseResult
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance


def up(env: Env, request: PlanRequest, *, detach: bool = False, show_log: bool = False) -> Report:
    """Exit 0 when up already, or ready and detached, or stopped in order; see docs/exit-codes.md for the rest."""
    made = planned_to_start(env, request)
    if made.plan.refusals:
        return refused("up", made.plan)
    if request.dry_run:
        # What only a dry run may say is left out: the real start is for this machine and the installed engine.
        steps = (request.line("up", without=("dry_run", "machine", "engine_version")),)
        return Report(command="up", data=made.plan, findings=made.plan.findings, next_steps=steps)
    running = _running(env, made.plan)
    return running if running is not None else _started(env, request, made, detach=detach, show_log=show_log)


def _running(env: Env, plan: Plan) -> Report | None:
    """The report when the same plan is up already; Busy when another one is, or when it is not ready yet."""
    snapshot = env.instances.read(plan.name)
    record = snapshot.record
    if not snapshot.supervised or record is None:
        return None
    if record.phase is not Phase.READY or record.served is None:
        raise Busy(
            f"{plan.name!r} is being started or stopped ({record.phase.value})", hint="dflashctl status"
        )
    if record.served.fingerprint != plan.fingerprint:
        raise Busy(
            f"{plan.name!r} is up with another plan ({record.served.fingerprint}, this one is {plan.fingerprint})",
            hint=f"dflashctl down {plan.name}   (or start a second one: --name NAME --port PORT)",
        )
    return Report(
        command="up",
        data=up_result(record, plan, already_up=True),
        findings=start_differences(plan, record),
        next_steps=("dflashctl status",),
    )


def _started(env: Env, request: PlanRequest, made: Planned, *, detach: bool, show_log: bool) -> Report:
    with stop_raises(), env.instances.own(made.plan.name) as owned:
        made = _prepared(env, request, made, owned)
        if made.plan.refusals:
            return refused("up", made.plan)
        remember(env, request, made, owned)
        if detach:
            return up_in_background(env, made.plan, owned)
        proving = Proving(env, made.plan)
        with proving:
            ended = run(
                made.plan,
                env,
                screen=env.show_line if show_log or env.is_first_process else None,
                owned=owned,
            )
        return _ended(made.plan, ended, proving.proofs)


def _prepared(env: Env, request: PlanRequest, made: Planned, owned: OwnedInstance) -> Planned:
    """As `prepared`; what forbids the start is written down as the end of the instance."""
    try:
        again = prepared(env, request, made, owned)
    except DflashError as error:
        stopped = error.exit_code in (ExitCode.OK, ExitCode.INTERRUPTED)
        _end(owned, Phase.STOPPED if stopped else Phase.FAILED, error.message)
        raise
    except KeyboardInterrupt:
        _end(owned, Phase.STOPPED, "stopped before the server was started")
        raise
    if again.plan.refusals:
        _end(owned, Phase.FAILED, again.plan.refusals[0].summary)
    return again


def _end(owned: OwnedInstance, phase: Phase, text: str) -> None:
    owned.enter(phase, text)
    owned.record(replace(owned.current, reason=Reason(code="not_started", text=text)))


def _ended(plan: Plan, ended: SuperviseResult, proofs: tuple[Proof, ...]) -> Report:
    if ended.exit_code is not ExitCode.OK or ended.exit_status != 0:
        return failed(plan, ended, proofs)
    bad = any_failed(proofs)
    return Report(
        command="up",
        data=up_result(ended.record, plan, proofs=proofs),
        outcome=Outcome.PARTIAL if bad else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if bad else ExitCode.OK,
        findings=start_differences(plan, ended.record),
        mute=ended.screen_stuck,
    )
