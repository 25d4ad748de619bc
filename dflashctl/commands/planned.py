"""From the command line's options to a Plan: the gathering that up, explain, doctor and render share."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.commands.ensure_weights import known_facts, known_pair
from dflashctl.commands.image_build import image_build
from dflashctl.commands.own_server import gpus_kept, own_server
from dflashctl.core.assumed import assumed_machine
from dflashctl.core.child_env import engine_settings
from dflashctl.core.engine import EngineBuild
from dflashctl.core.errors import EngineError, UsageProblem
from dflashctl.core.exposure import exposure
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.instance import check_name
from dflashctl.core.machine import Machine
from dflashctl.core.pair import PAIR_CONTEXT
from dflashctl.core.placement import gpus_needed
from dflashctl.core.plan import Plan, PlanOptions, make_plan
from dflashctl.core.profile import EngineName
from dflashctl.core.profile_rules import MAX_PORT
from dflashctl.core.release import release_named
from dflashctl.core.running import without_server
from dflashctl.engines import ENGINES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dflashctl.core.engine import Engine
    from dflashctl.core.options import PlanRequest
    from dflashctl.core.profile import ModelRef, Profile
    from dflashctl.core.running import RunningServer
    from dflashctl.env import Env
    from dflashctl.ports.profiles import LoadedProfile

# More than any host has; beyond it the plan is refused for too few GPUs instead of being made up.
_MOST_ASSUMED = 64
_ASSUMED = "machine_assumed"
_CONTEXT = "context_beyond_draft"
NEWEST_REFERENCE = ENGINES[EngineName.REFERENCE.value].NEWEST_RELEASE
PYTHON_VARIABLE = "DFLASHCTL_ENGINE_PYTHON"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The plan and all that it was made from."""

    loaded: LoadedProfile
    machine: Machine
    build: EngineBuild
    plan: Plan

    @property
    def profile(self) -> Profile:
        return self.loaded.profile


def planned(
    env: Env, request: PlanRequest, *, machine: Machine | None = None, own: RunningServer | None = None
) -> Planned:
    """The plan for `request`; raises what cannot even be planned, refusals are in plan.findings.

    `machine` is planned for as it is, without `own`, the request's own server if it runs there; None reads both.
    """
    if request.name is not None:
        check_name(request.name)
    loaded = env.profiles.load(request.profile, tuple(request.overrides()))
    if loaded.profile.engine.name is EngineName.REFERENCE:
        _require_no_engine_options(env, request)
    engine = ENGINES[loaded.profile.engine.name.value]
    python = _python(env, request, loaded.profile)
    build, build_findings = _build(env, request, loaded.profile, engine, python)
    need = gpus_needed(loaded.profile, engine.gpu_use(loaded.profile, request.raw_args, build))
    machine_findings: tuple[Finding, ...] = ()
    if machine is None:
        own = own_server(env, request) if need else None
        machine, machine_findings = _machine(env, request, loaded.profile, need)
        machine = without_server(machine, own) if own else machine
    facts = known_facts(env, loaded)
    plan = make_plan(
        loaded.profile,
        machine,
        engine,
        build,
        PlanOptions(
            name=request.name,
            python=python,
            runtime=request.runtime,
            image=request.image,
            gpus=gpus_kept(own, machine, need) if request.gpus is None else gpu_keys(request.gpus),
            raw_args=request.raw_args,
            inherited=engine_settings(_environment(env, machine)),
            origins=loaded.origins,
            model_paths=_model_paths(env, loaded),
            target_facts=facts.get("target"),
            draft_facts=facts.get("draft"),
        ),
    )
    plan = replace(plan, findings=(*build_findings, *machine_findings, *plan.findings))
    return Planned(loaded=loaded, machine=machine, build=build, plan=plan)


def planned_to_start(env: Env, request: PlanRequest) -> Planned:
    """As `planned`, with what speaks about serving rather than about the machine; Permanent for an unusable key.

    A real start looks at the weights itself; a dry run says of the pair what is to be known without them.
    """
    env.api_key()
    made = planned(env, request)
    more = (
        *exposure(made.plan, env.environ),
        *_listening(env, request, made.plan),
        *(_pair(env, made) if request.dry_run else ()),
    )
    return replace(made, plan=replace(made.plan, findings=(*made.plan.findings, *more)))


def _pair(env: Env, made: Planned) -> Iterator[Finding]:
    """Without what a rule of the engine says already."""
    told = {finding.id for finding in made.plan.findings}
    return (f for f in known_pair(env, made.loaded) if f.id != PAIR_CONTEXT or _CONTEXT not in told)


def _listening(env: Env, request: PlanRequest, plan: Plan) -> Iterator[Finding]:
    """A host or port at which no server can ever listen here; one that is taken may be free later.

    Only a warning where the plan is for a machine that is not this one.
    """
    if request.machine is not None or request.runtime == "docker" or not 0 < plan.port <= MAX_PORT:
        return
    use = env.machine.port_use(plan.host, plan.port, "HTTP")
    if use.problem is not None:
        elsewhere = any(finding.id == _ASSUMED for finding in plan.findings)
        severity = Severity.WARNING if elsewhere else Severity.ERROR
        yield Finding(id="cannot_listen", severity=severity, summary=use.problem, fix=use.fix)


def _require_no_engine_options(env: Env, request: PlanRequest) -> None:
    """The reference engine is part of dflashctl: what chooses another engine would only seem to be obeyed."""
    asked = None if request.engine_version is None else release_named(request.engine_version)
    given = {
        "--engine-version": asked not in (None, NEWEST_REFERENCE),
        "--python": request.python not in (None, env.python),
        "--gpus": bool(request.gpus),
        "--runtime docker": request.runtime == "docker",
        "--image": request.image is not None,
    }
    wrong = next((option for option, is_given in given.items() if is_given), None)
    if wrong is not None:
        raise UsageProblem(
            f"{wrong} means nothing to the reference engine, which is part of dflashctl {NEWEST_REFERENCE}, "
            "runs in its interpreter and computes on the CPU",
            hint=f"leave {wrong} out, or choose a profile of SGLang",
        )


def _environment(env: Env, machine: Machine) -> Mapping[str, str]:
    """What is set here, over what a saved machine had set."""
    saved = machine.host.engine_variables if machine.host is not None else ()
    return {**dict(saved), **env.environ}


def gpu_keys(text: str | None) -> tuple[str, ...] | None:
    """The indices or UUIDs of a --gpus list; None when it was not given."""
    return None if text is None else tuple(key.strip() for key in text.split(",") if key.strip())


def _python(env: Env, request: PlanRequest, profile: Profile) -> str:
    if profile.engine.name is EngineName.REFERENCE:
        return env.python
    if request.runtime == "docker":
        return "python3"
    given = request.python or env.environ.get(PYTHON_VARIABLE) or profile.engine.python
    return os.path.expanduser(given) if given else env.python


def _build(
    env: Env, request: PlanRequest, profile: Profile, engine: Engine, python: str
) -> tuple[EngineBuild, tuple[Finding, ...]]:
    asked = None if request.engine_version is None else release_named(request.engine_version)
    if profile.engine.name is EngineName.REFERENCE:
        return EngineBuild(release=engine.NEWEST_RELEASE, python=python, installed=True), ()
    if asked is not None:
        if not request.dry_run:
            raise UsageProblem(
                "--engine-version judges a release without having it; a real start runs the engine that is installed",
                hint=replace(request, dry_run=True).line("up"),
            )
        return EngineBuild(release=asked, python=python), ()
    if request.runtime == "docker":
        return image_build(env, request.image or profile.engine.image, engine)
    found = env.engines.find(python=python)
    if found is not None:
        return found, ()
    if request.dry_run:
        return EngineBuild(release=engine.NEWEST_RELEASE, python=python), (_not_installed(engine, python),)
    raise EngineError(
        f"SGLang is not installed for {python}",
        hint=f"{engine.install_hint(engine.NEWEST_RELEASE)}   (or name its interpreter: --python PATH; "
        "`dflashctl up tiny-cpu` needs no engine)",
    )


def _not_installed(engine: Engine, python: str) -> Finding:
    return Finding(
        id="engine_not_installed",
        severity=Severity.NOTE,
        summary=f"SGLang is not installed for {python}: planned for the newest known release, {engine.NEWEST_RELEASE}",
        fix="--engine-version V plans for another release",
    )


def _machine(
    env: Env, request: PlanRequest, profile: Profile, need: int
) -> tuple[Machine, tuple[Finding, ...]]:
    if request.machine is not None:
        return env.machine.load(env.cwd / request.machine), ()
    if profile.requirements.gpus == 0:
        return Machine(), ()
    machine = env.machine.snapshot()
    if machine.gpus or not request.dry_run:
        return machine, ()
    assumed = assumed_machine(replace(profile.requirements, gpus=min(need, _MOST_ASSUMED)))
    what = f"{len(assumed.gpus)}x {assumed.gpus[0].name}" if assumed.gpus else "no GPU"
    note = Finding(
        id=_ASSUMED,
        severity=Severity.NOTE,
        summary=f"this machine has no GPU: planned for the machine that the profile requires ({what})",
        fix="--machine FILE plans for a saved machine",
    )
    return assumed, (note,)


def _models(profile: Profile) -> Mapping[str, ModelRef]:
    models = {"target": profile.target}
    return {**models, "draft": profile.draft} if profile.draft is not None else models


def local_folders(env: Env, loaded: LoadedProfile) -> Mapping[str, Path]:
    """Folder of each model (by label) that the profile names by path."""
    refs = _models(loaded.profile).values()
    return {ref.label: env.profiles.model_path(loaded.file, ref.path) for ref in refs if ref.path is not None}


def _model_paths(env: Env, loaded: LoadedProfile) -> Mapping[str, str]:
    return {label: str(folder) for label, folder in local_folders(env, loaded).items()}
