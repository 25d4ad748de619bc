"""`up`: plan, fetch, check, start, prove, and stay in front."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.as_planned import start_differences
from dflashctl.commands.drift import remember
from dflashctl.commands.planned import planned_to_start
from dflashctl.commands.prepared import prepared
from dflashctl.commands.up_proofs import Proving, prove_plan
from dflashctl.core.errors import Busy, DflashError, ExitCode
from dflashctl.core.instance import Phase, Reason
from dflashctl.core.report import ErrorInfo, Outcome, Report
from dflashctl.core.smoke import ProofStatus
from dflashctl.core.up_result import UpResult
from dflashctl.supervise import run, start_detached, stop_raises

if TYPE_CHECKING:
    from dflashctl.commands.planned import Planned
    from dflashctl.core.instance import InstanceRecord
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


def refused(command: str, plan: Plan) -> Report:
    """Exit 78: nothing was started; each refusal is an error with its fix."""
    errors = tuple(
        ErrorInfo(message=f.summary, hint=f.fix, detail=f.detail, exit_code=int(ExitCode.PERMANENT))
        for f in plan.refusals
    )
    others = tuple(f for f in plan.findings if f not in plan.refusals)
    return Report(
        command=command,
        data=plan,
        outcome=Outcome.FAILED,
        exit_code=ExitCode.PERMANENT,
        findings=others,
        errors=errors,
    )


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
        data=_result(record, plan, already_up=True),
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
            return _detached(env, made.plan, start_detached(made.plan, env, owned=owned))
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


def _detached(env: Env, plan: Plan, started: SuperviseResult) -> Report:
    if started.exit_code is not ExitCode.OK:
        return _failed(plan, started, ())
    if started.interrupted or started.record.phase is Phase.STOPPED:
        return _not_waited_for(plan, started)
    if not started.record.ready:
        steps = ("dflashctl status --watch", f"dflashctl down {plan.name}")
        return Report(
            command="up",
            data=_result(started.record, plan),
            outcome=Outcome.PARTIAL,
            findings=plan.findings,
            next_steps=steps,
        )
    try:
        proofs = prove_plan(env, plan)
    except KeyboardInterrupt:
        return _not_waited_for(plan, started)
    bad = _any_failed(proofs)
    return Report(
        command="up",
        data=_result(started.record, plan, proofs=proofs),
        outcome=Outcome.PARTIAL if bad else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if bad else ExitCode.OK,
        findings=(*plan.findings, *start_differences(plan, started.record)),
        next_steps=(
            f"dflashctl status {plan.name}",
            f"dflashctl bench {plan.name}",
            f"dflashctl down {plan.name}",
        ),
    )


def _not_waited_for(plan: Plan, started: SuperviseResult) -> Report:
    """Exit 130: the user went away before it was known to be ready, or somebody stopped it meanwhile."""
    told = f"{plan.name!r} goes on in the background ({started.record.phase.value})"
    steps: tuple[str, ...] = ("dflashctl status --watch", f"dflashctl down {plan.name}")
    if not started.left_running:
        told, steps = f"{plan.name!r} was stopped before it was ready", (f"dflashctl up {plan.profile}",)
    error = ErrorInfo(message=f"interrupted: {told}", hint=steps[-1], exit_code=int(ExitCode.INTERRUPTED))
    return Report(
        command="up",
        data=_result(started.record, plan),
        outcome=Outcome.PARTIAL if started.left_running else Outcome.FAILED,
        exit_code=ExitCode.INTERRUPTED,
        findings=plan.findings,
        errors=(error,),
        next_steps=steps,
    )


def _ended(plan: Plan, ended: SuperviseResult, proofs: tuple[Proof, ...]) -> Report:
    if ended.exit_code is not ExitCode.OK or ended.exit_status != 0:
        return _failed(plan, ended, proofs)
    bad = _any_failed(proofs)
    return Report(
        command="up",
        data=_result(ended.record, plan, proofs=proofs),
        outcome=Outcome.PARTIAL if bad else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if bad else ExitCode.OK,
        findings=start_differences(plan, ended.record),
        mute=ended.screen_stuck,
    )


def _failed(plan: Plan, ended: SuperviseResult, proofs: tuple[Proof, ...]) -> Report:
    """The first cause as an error with its evidence; the exit status is the supervisor's verdict."""
    errors = tuple(
        ErrorInfo(message=f.summary, hint=f.fix, detail=f.detail, exit_code=ended.exit_status)
        for f in ended.findings
    )
    return Report(
        command="up",
        data=_result(ended.record, plan, proofs=proofs),
        outcome=Outcome.FAILED,
        exit_code=ended.exit_status,
        errors=errors,
        next_steps=(f"dflashctl diagnose {plan.name}", f"dflashctl logs {plan.name}"),
        mute=ended.screen_stuck,
    )


def _any_failed(proofs: tuple[Proof, ...]) -> bool:
    return any(proof.status is ProofStatus.FAIL for proof in proofs)


def _result(
    record: InstanceRecord, plan: Plan, *, already_up: bool = False, proofs: tuple[Proof, ...] = ()
) -> UpResult:
    return UpResult(
        name=plan.name,
        url=record.served.url if record.served else f"http://{plan.host}:{plan.port}",
        phase=record.phase.value,
        ready=record.ready,
        already_up=already_up,
        plan=plan,
        proofs=proofs,
        accept_length=record.probe.accept_length,
    )
