"""`profile explain`: each engine argument with its origin, for one release or all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.planned import planned
from dflashctl.core.errors import EngineError, ExitCode, UsageProblem
from dflashctl.core.explain import Cell, Matrix, cell, explained
from dflashctl.core.profile import EngineName
from dflashctl.core.report import ErrorInfo, Outcome, Report
from dflashctl.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.options import PlanRequest
    from dflashctl.core.plan import Plan
    from dflashctl.env import Env

_COMMAND = "profile explain"


def profile_explain(env: Env, request: PlanRequest) -> Report:
    """The table of the plan for `request`; exit 78 when the plan is refused, with the table all the same."""
    plan = planned(env, replace(request, dry_run=True)).plan
    errors = tuple(ErrorInfo.of(EngineError(f.summary, hint=f.fix, detail=f.detail)) for f in plan.refusals)
    return Report(
        command=_COMMAND,
        data=explained(plan),
        outcome=Outcome.FAILED if errors else Outcome.OK,
        exit_code=ExitCode.PERMANENT if errors else ExitCode.OK,
        findings=plan.findings,
        errors=errors,
        next_steps=(_next(plan, request),),
    )


def _next(plan: Plan, request: PlanRequest) -> str:
    if plan.engine == EngineName.REFERENCE.value:
        return replace(request, dry_run=True).line("up")
    asked = request.line("profile explain", without=("dry_run", "engine_version"))
    before, dashes, raw = asked.partition(" -- ")
    return f"{before} --all-versions{dashes}{raw}"


def profile_matrix(env: Env, request: PlanRequest | None = None) -> Report:
    """The profile of `request`, or every SGLang profile, against every known release."""
    if request is not None:
        _require_sglang(env, request.profile)
    names = (request.profile,) if request is not None else tuple(_sglang_profiles(env))
    releases = ENGINES[EngineName.SGLANG.value].RELEASES
    cells = tuple(found for name in names for found in _cells(env, _request(name, request), releases))
    return Report(command=_COMMAND, data=Matrix(releases=releases, cells=cells))


def _require_sglang(env: Env, name: str) -> None:
    if env.profiles.load(name).profile.engine.name is not EngineName.SGLANG:
        raise UsageProblem(
            f"--all-versions compares the releases of SGLang, and {name!r} runs on the engine within dflashctl",
            hint=f"dflashctl profile explain {name}",
        )


def _request(name: str, request: PlanRequest | None) -> PlanRequest:
    from dflashctl.core.options import PlanRequest

    return request if request is not None else PlanRequest(profile=name)


def _cells(env: Env, request: PlanRequest, releases: tuple[str, ...]) -> Iterator[Cell]:
    for release in releases:
        asked = replace(request, engine_version=release, dry_run=True)
        yield cell(request.profile, release, planned(env, asked).plan)


def _sglang_profiles(env: Env) -> Iterator[str]:
    for file in env.profiles.list():
        if file.name == "reference":
            continue
        if env.profiles.load(file.name).profile.engine.name is EngineName.SGLANG:
            yield file.name
