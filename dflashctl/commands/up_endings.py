"""Up's endings: the reports that a start in front and one in the background share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import ExitCode
from dflashctl.core.report import ErrorInfo, Outcome, Report
from dflashctl.core.up_result import UpResult

if TYPE_CHECKING:
    from dflashctl.core.instance import InstanceRecord
    from dflashctl.core.plan import Plan
    from dflashctl.core.smoke import Proof
    from dflashctl.core.supervise_result import SuperviseResult


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


def failed(plan: Plan, ended: SuperviseResult, proofs: tuple[Proof, ...]) -> Report:
    """The first cause as an error with its evidence; the exit status is the supervisor's verdict."""
    errors = tuple(
        ErrorInfo(message=f.summary, hint=f.fix, detail=f.detail, exit_code=ended.exit_status)
        for f in ended.findings
    )
    return Report(
        command="up",
        data=up_result(ended.record, plan, proofs=proofs),
        outcome=Outcome.FAILED,
        exit_code=ended.exit_status,
        errors=errors,
        next_steps=(f"dflashctl diagnose {plan.name}", f"dflashctl logs {plan.name}"),
        mute=ended.screen_stuck,
    )


def up_result(
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
