"""Plan: profile + machine + engine facts → exactly what will run, as one pure function."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dflashctl.core.engine import (
    Argument,
    Endpoints,
    Engine,
    EngineBuild,
    EngineRequest,
    ModelFacts,
    Translation,
)
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.placement import place
from dflashctl.core.profile import Algorithm, ModelRef, Timing
from dflashctl.core.profile_rules import broken_numbers
from dflashctl.core.release_range import in_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.machine import Machine
    from dflashctl.core.profile import Profile


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What the command line adds; `model_paths` maps a model's label to the folder the engine is given.

    `gpus` are the wanted GPUs by index or UUID, None for the best ones. `inherited` are the engine's settings in the
    caller's environment, which the server gets too.
    """

    name: str | None = None
    python: str = "python3"
    runtime: str = "process"
    image: str | None = None
    gpus: tuple[str, ...] | None = None
    raw_args: tuple[str, ...] = ()
    inherited: Mapping[str, str] = field(default_factory=dict)
    origins: Mapping[str, str] = field(default_factory=dict)
    model_paths: Mapping[str, str] = field(default_factory=dict)
    target_facts: ModelFacts | None = None
    draft_facts: ModelFacts | None = None


@dataclass(frozen=True, kw_only=True)
class PlannedModel:
    """A model of the plan: `model` is what the engine is given."""

    repo: str | None
    revision: str | None
    path: str | None
    model: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Complete: `up` runs argv with env and nothing else. `gpus` are UUIDs (indices when planned for a kind)."""

    profile: str
    name: str
    engine: str
    engine_version: str
    runtime: str
    image: str | None
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    gpus: tuple[str, ...]
    target: PlannedModel
    draft: PlannedModel | None
    block_size: int | None
    draft_window_size: int | None
    host: str
    port: int
    served_model_name: str
    timing: Timing
    endpoints: Endpoints
    translations: tuple[Translation, ...] = ()
    arguments: tuple[Argument, ...] = ()
    resolved: tuple[Argument, ...] = ()
    findings: tuple[Finding, ...] = ()
    fingerprint: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        return tuple(f.summary for f in self.findings if f.severity is Severity.WARNING)

    @property
    def refusals(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity is Severity.ERROR)

    @property
    def speculation(self) -> bool:
        return self.draft is not None and self.block_size is not None

    def to_json(self) -> dict[str, object]:
        """The keys of docs/json.md for `up --dry-run --json`."""
        return {
            "profile": self.profile,
            "name": self.name,
            "engine": self.engine,
            "engine_version": self.engine_version,
            "runtime": self.runtime,
            "image": self.image,
            "argv": self.argv,
            "env": dict(self.env),
            "gpus": self.gpus,
            "target": self.target,
            "draft": self.draft,
            "block_size": self.block_size,
            "draft_window_size": self.draft_window_size,
            "host": self.host,
            "port": self.port,
            "served_model_name": self.served_model_name,
            "warnings": self.warnings,
            "translations": self.translations,
            "fingerprint": self.fingerprint,
        }


def make_plan(
    profile: Profile, machine: Machine, engine: Engine, build: EngineBuild, options: PlanOptions
) -> Plan:
    """The plan for that profile on that machine with that engine build; refusals are findings, never raised."""
    real = engine.effective(profile, options.raw_args, build)
    placement = place(real, machine, options.gpus, use=engine.gpu_use(profile, options.raw_args, build))
    target = _planned(profile.target, options)
    draft = _planned(profile.draft, options) if profile.draft and _speculates(profile) else None
    served = real.served_name
    command = engine.command(
        EngineRequest(
            profile=profile,
            machine=machine,
            build=build,
            target_model=target.model,
            draft_model=draft.model if draft else None,
            origins=options.origins,
            raw_args=options.raw_args,
            inherited=options.inherited,
            target_facts=options.target_facts,
            draft_facts=options.draft_facts,
        )
    )
    plan = Plan(
        profile=profile.name,
        name=options.name or profile.name,
        engine=engine.NAME,
        engine_version=build.local_version or build.release,
        runtime=options.runtime,
        image=options.image or profile.engine.image if options.runtime == "docker" else None,
        argv=(options.python, *command.module_argv),
        env=_environment(profile, options.runtime, machine, placement.gpus, command.env),
        gpus=placement.gpus,
        target=target,
        draft=draft,
        block_size=_block_size(real, options) if draft else None,
        draft_window_size=real.speculative.draft_window_size if draft else None,
        host=real.server.host,
        port=real.server.port,
        served_model_name=served,
        timing=profile.timing,
        endpoints=engine.endpoints(build.release),
        translations=_translations(profile, engine, build, command.translations),
        arguments=command.arguments,
        resolved=command.resolved,
        findings=(
            *_out_of_range(real),
            *_meant_for(profile, engine, build),
            *placement.findings,
            *command.findings,
        ),
    )
    return replace(plan, fingerprint=fingerprint(plan))


def fingerprint(plan: Plan) -> str:
    """A hash of what runs (argv, env, GPUs, models); equal fingerprints mean the same server."""
    essence = [
        plan.argv,
        plan.env,
        plan.gpus,
        plan.target.revision,
        plan.draft and plan.draft.revision,
        plan.image,
    ]
    return hashlib.sha256(json.dumps(essence).encode()).hexdigest()[:16]


def _meant_for(profile: Profile, engine: Engine, build: EngineBuild) -> tuple[Finding, ...]:
    """A warning when the profile names its releases and this is none of them."""
    versions = profile.engine.versions
    if versions is None or in_range(build.release, versions):
        return ()
    summary = f"profile {profile.name!r} is meant for {engine.NAME} {versions}, this is {build.release}"
    return (
        Finding(
            id="engine_version_not_meant",
            severity=Severity.WARNING,
            summary=summary,
            fix="use such a release, or change engine.versions when this one serves as well",
        ),
    )


def _out_of_range(real: Profile) -> tuple[Finding, ...]:
    """What the profile's own rules say of raw arguments and extra_args; the loader has seen only the profile's part."""
    return tuple(
        Finding(
            id="value_out_of_range",
            severity=Severity.ERROR,
            summary=f"{path} {text}",
            detail="set by an engine argument (extra_args or after --)",
            fix=f"give that argument another value, or leave it out and use --set {path}=VALUE",
        )
        for path, text in broken_numbers(real)
    )


# The engine reads the verified snapshot and nothing else.
_PLAIN_LIST = re.compile(r"\d+(,\d+)*")
_OFFLINE = (("HF_HUB_OFFLINE", "1"), ("TRANSFORMERS_OFFLINE", "1"))


def _environment(
    profile: Profile,
    runtime: str,
    machine: Machine,
    gpus: tuple[str, ...],
    engine_env: tuple[tuple[str, str], ...],
) -> tuple[tuple[str, str], ...]:
    """What is set for the engine beside its own variables: offline for hub models, and the GPUs where it matters."""
    refs = (profile.target, profile.draft)
    offline = _OFFLINE if any(ref is not None and ref.repo for ref in refs) else ()
    return (*engine_env, *offline, *_visible(runtime, machine, gpus))


def _visible(runtime: str, machine: Machine, gpus: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """The chosen GPUs, when they are not all or the caller's own CUDA_VISIBLE_DEVICES would reach the engine otherwise.

    By index in PCI order, since SGLang parses the list as numbers and dies of a UUID. A container is given the
    chosen GPUs alone and counts them from 0, whatever their numbers are outside.
    """
    inherited = machine.visible_devices
    plain = inherited is None or _PLAIN_LIST.fullmatch(inherited) is not None
    if not gpus or machine.assumed or (len(gpus) == len(machine.gpus) and plain):
        return ()
    chosen = sorted(gpu.index for gpu in machine.gpus if gpu.uuid in gpus)
    indices = range(len(chosen)) if runtime == "docker" else chosen
    return (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("CUDA_VISIBLE_DEVICES", ",".join(map(str, indices))))


def _translations(
    profile: Profile, engine: Engine, build: EngineBuild, made: tuple[Translation, ...]
) -> tuple[Translation, ...]:
    """What became of the profile's own arguments, then of the published command where that says more."""
    published = engine.published(profile.expect.command, build.release) if profile.expect.command else ()
    known = {translation.from_ for translation in made}
    return (*made, *(translation for translation in published if translation.from_ not in known))


def _speculates(profile: Profile) -> bool:
    return profile.speculative.algorithm is not Algorithm.NONE


def _block_size(profile: Profile, options: PlanOptions) -> int | None:
    trained = options.draft_facts.block_size if options.draft_facts else None
    return profile.speculative.block_size or trained


def _planned(ref: ModelRef, options: PlanOptions) -> PlannedModel:
    model = options.model_paths.get(ref.label, ref.repo or ref.path or "")
    return PlannedModel(repo=ref.repo, revision=ref.revision, path=ref.path, model=model)
