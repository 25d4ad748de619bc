"""`up`: plan, fetch, check, start, prove, and stay in front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.planned import planned
from dflashctl.core.errors import ExitCode
from dflashctl.core.report import ErrorInfo, Outcome, Report

if TYPE_CHECKING:
    from dflashctl.core.options import PlanRequest
    from dflashctl.core.plan import Plan
    from dflashctl.env import Env


def up(env: Env, request: PlanRequest, *, detach: bool = False) -> Report:
    """Exit 0 when up already, or ready and detached, or stopped in order; see docs/exit-codes.md for the rest."""
    made = planned(env, request)
    if made.plan.refusals:
        return _refused(made.plan)
    if request.dry_run:
        return Report(
            command="up", data=made.plan, findings=made.plan.findings, next_steps=(f"dflashctl up {request.profile}",)
        )
    raise NotImplementedError


def _refused(plan: Plan) -> Report:
    """Exit 78: nothing was started; each refusal is an error with its fix."""
    errors = tuple(
        ErrorInfo(message=f.summary, hint=f.fix, detail=f.detail, exit_code=int(ExitCode.PERMANENT))
        for f in plan.refusals
    )
    others = tuple(f for f in plan.findings if f not in plan.refusals)
    return Report(
        command="up",
        data=plan,
        outcome=Outcome.FAILED,
        exit_code=ExitCode.PERMANENT,
        findings=others,
        errors=errors,
    )
