"""doctor: gather the machine and the plan → judge them by every check → one verdict with what to do."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.checks import examine, judge
from dflashctl.commands.doctor_gather import (
    engine_python,
    facts_of,
    gather,
    named,
    survey,
    weights_folder,
)
from dflashctl.commands.doctor_options import DoctorOptions, refuse_nonsense
from dflashctl.core.deep import DeepRequest
from dflashctl.core.doctor_result import DoctorResult, DoctorWatch, unknown_facts
from dflashctl.core.doctor_verdict import outcome_of, verdict
from dflashctl.core.errors import ExitCode
from dflashctl.core.findings import Severity
from dflashctl.core.machine import Machine
from dflashctl.core.options import PlanRequest
from dflashctl.core.progress import Progress
from dflashctl.core.report import Outcome, Report
from dflashctl.core.simulated import PLAN_FINDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.commands.planned import Planned
    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.env import Env

__all__ = ["DoctorOptions", "before_start", "doctor", "judge"]

_WATCH_EVERY_S = 1.0
_TOO_FEW_GPUS = "gpu_count"


def doctor(env: Env, options: DoctorOptions) -> Report | Iterator[Report]:
    """The report; with `watch` an endless row of reports, one a second."""
    refuse_nonsense(options)
    if options.watch:
        return _watch(env, _watched(env, options.plan))
    return _examine(env, options)


def before_start(env: Env, made: Planned, request: PlanRequest) -> tuple[Finding, ...]:
    """The quick part for a plan that is about to start: what `up` stops at when one is an error.

    The plan's own findings are not among them. A plan for an engine without GPUs is judged by the host alone.
    """
    machine = made.machine if request.machine is not None else env.machine.survey(made.plan.argv[0])
    return judge(facts_of(env, replace(made, machine=machine), request))


def _examine(env: Env, options: DoctorOptions) -> Report:
    begin = env.clock.monotonic()
    machine = survey(env, options.plan)
    facts = gather(env, options.plan, machine)
    quick_s = env.clock.monotonic() - begin
    if options.deep:
        facts = _go_deep(env, options, facts)
    results = examine(facts)
    findings = (*_from_plan(facts), *(finding for result in results for finding in result.findings))
    saved = _save(env, options, machine)
    saved_machine = options.plan.machine
    outcome, code = outcome_of(findings)
    data = DoctorResult(
        verdict=verdict(facts, findings, saved=saved_machine is not None),
        profile=facts.profile.name if facts.profile else None,
        source=saved_machine,
        machine=machine,
        gpus=facts.plan.gpus if facts.plan else facts.named,
        fit=facts.fit,
        fit_now=facts.fit_now,
        ports=facts.ports,
        weights=facts.weights,
        deep=facts.deep,
        checks=results,
        unknown=unknown_facts(facts),
        quick_s=round(quick_s, 3),
        saved=saved,
        detailed=options.verbose,
    )
    return Report(
        command="doctor",
        data=data,
        outcome=outcome,
        exit_code=code,
        findings=findings,
        next_steps=_next_steps(facts, options, failed=code != 0),
    )


def _from_plan(facts: Facts) -> tuple[Finding, ...]:
    """What speaks against the plan; its mere remarks belong to `profile explain`.

    That GPUs are missing and that accept lengths are made up is left to the checks that say so.
    """
    findings = facts.plan.findings if facts.plan else ()
    explained = {PLAN_FINDING, *([_TOO_FEW_GPUS] if facts.machine.gpu_absence is not None else ())}
    return tuple(f for f in findings if f.severity is not Severity.NOTE and f.id not in explained)


def _go_deep(env: Env, options: DoctorOptions, facts: Facts) -> Facts:
    env.notify(
        Progress(step="deep", text="starting CUDA, copying, reducing, reading and compiling; up to 4 minutes")
    )
    deep = env.machine.deep(_deep_request(env, options, facts))
    env.notify(Progress(step="deep", text="tried", final=True))
    return replace(facts, deep=deep)


def _deep_request(env: Env, options: DoctorOptions, facts: Facts) -> DeepRequest:
    """The plan's GPUs and weights; a profile that needs no GPU is not judged by any."""
    python = engine_python(env, options.plan)
    gpus = tuple(gpu.uuid for gpu in facts.gpus)
    if facts.profile is None:
        return DeepRequest(python=python, gpus=gpus, no_weights="no profile names the weights")
    folder = weights_folder(env, env.profiles.load(options.plan.profile))
    if not facts.needs_gpus:
        return DeepRequest(python=python, weights=folder, no_gpus="the profile needs no GPU")
    return DeepRequest(python=python, gpus=gpus, weights=folder)


def _save(env: Env, options: DoctorOptions, machine: Machine) -> str | None:
    if options.save_machine is None:
        return None
    env.machine.save(machine, env.cwd / options.save_machine)
    return options.save_machine


def _next_steps(facts: Facts, options: DoctorOptions, *, failed: bool) -> tuple[str, ...]:
    if failed or not options.plan.profile or options.plan.machine is not None:
        return ()
    if facts.running is not None:
        return (f"dflashctl status {facts.running.name}",)
    missing = any((w.present_bytes or 0) < (w.wanted_bytes or 0) for w in facts.weights)
    if missing:
        plan = options.plan  # fetch is asked for the same models; it knows of no server
        asked = PlanRequest(profile=plan.profile, sets=plan.sets, offline=plan.offline)
        return (asked.line("fetch"),)
    return (options.plan.line("up", without=("dry_run", "engine_version")),)


def _watched(env: Env, request: PlanRequest) -> tuple[str, ...] | None:
    """The UUIDs of the GPUs that --gpus names, None for all; without a driver there are none to name."""
    gpus = env.machine.activity().gpus
    return named(Machine(gpus=gpus), request) or None if gpus else None


def _watch(env: Env, only: tuple[str, ...] | None) -> Iterator[Report]:
    """Clocks, power, throttling and memory once a second, until the user stops it."""
    begin = env.clock.monotonic()
    while True:
        now = env.machine.activity()
        problem = None if now.gpus else _nothing_to_watch(env, now.unreadable)
        at_s = round(env.clock.monotonic() - begin, 1)
        shown = tuple(gpu for gpu in now.gpus if only is None or gpu.uuid in only)
        data = DoctorWatch(at_s=at_s, gpus=shown, unreadable=now.unreadable, problem=problem)
        if problem is not None:
            yield Report(command="doctor", data=data, outcome=Outcome.FAILED, exit_code=ExitCode.CHECK_FAILED)
            return
        yield Report(command="doctor", data=data)
        env.clock.sleep(_WATCH_EVERY_S)


def _nothing_to_watch(env: Env, unreadable: tuple[str, ...]) -> str:
    return env.machine.snapshot().gpu_problem or "; ".join(unreadable) or "no GPU to watch"
