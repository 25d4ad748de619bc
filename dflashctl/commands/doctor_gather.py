"""Gathering for doctor: the machine, the plan for it, the models' sizes, the ports, and the memory fit."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.commands.own_server import own_server
from dflashctl.commands.planned import PYTHON_VARIABLE, gpu_keys, planned
from dflashctl.commands.weights_gather import expected_folder, roles, standing_folder
from dflashctl.core.engine_folders import moved, unseen
from dflashctl.core.errors import Permanent, UsageProblem
from dflashctl.core.facts import Facts, PortUse, WeightsOnDisk
from dflashctl.core.fit import FitRequest
from dflashctl.core.fit_verdict import judge_fit, untold_fit
from dflashctl.core.json_text import json_loads
from dflashctl.core.known_models import KNOWN_MODELS
from dflashctl.core.kv_geometry import geometry_of
from dflashctl.core.placement import named_gpus
from dflashctl.core.profile import EngineName
from dflashctl.core.profile_rules import MAX_PORT
from dflashctl.core.running import without_server
from dflashctl.core.serving import Serving, serving
from dflashctl.engines import ENGINES

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.commands.planned import Planned
    from dflashctl.core.fit import Fit
    from dflashctl.core.kv_geometry import Geometry
    from dflashctl.core.machine import Gpu, Machine
    from dflashctl.core.options import PlanRequest
    from dflashctl.core.plan import Plan
    from dflashctl.core.profile import ModelRef
    from dflashctl.env import Env
    from dflashctl.ports.profiles import LoadedProfile

_PLAIN_RELEASE = re.compile(r"\d+\.\d+\.\d+(?:\.post\d+)?")
_WEIGHTS = ".safetensors"
_INDEX = "model.safetensors.index.json"
_PORT_OPTIONS = (("--nccl-port", "NCCL"), ("--dist-init-addr", "distributed start"), ("--grpc-port", "gRPC"))


@dataclass(frozen=True, kw_only=True)
class _Model:
    """One model as far as it is known here."""

    disk: WeightsOnDisk
    geometry: Geometry | None
    weights_bytes: int | None
    folder: Path | None


def survey(env: Env, request: PlanRequest) -> Machine:
    """The machine to judge: the saved one that `request` names, else this one with all its facts."""
    if request.machine is not None:
        return env.machine.load(env.cwd / request.machine)
    return env.machine.survey(engine_python(env, request))


def engine_python(env: Env, request: PlanRequest) -> str:
    """The interpreter that would start the engine."""
    given = request.python or env.environ.get(PYTHON_VARIABLE)
    if given is None and request.profile:
        engine = env.profiles.load(request.profile).profile.engine
        given = engine.python if engine.name is EngineName.SGLANG else None
    return given or env.python


def gather(env: Env, request: PlanRequest, machine: Machine) -> Facts:
    """The facts about `machine`, and with a profile about its plan there; nothing is fetched or started.

    A server of that plan that runs already is taken off the machine before it is judged.
    """
    if not request.profile:
        return Facts(machine=machine, named=named(machine, request))
    server = own_server(env, request)
    judged = without_server(machine, server) if server else machine
    on_sglang = env.profiles.load(request.profile).profile.engine.name is EngineName.SGLANG
    asked = _to_plan(request, judged) if on_sglang else replace(request, dry_run=True)
    made = planned(env, asked, machine=judged, own=server)
    return replace(facts_of(env, made, request), running=server)


def named(machine: Machine, request: PlanRequest) -> tuple[str, ...]:
    """The UUIDs of the GPUs that --gpus names, none when it was not given; UsageProblem for one that is not there."""
    keys = gpu_keys(request.gpus)
    if keys is None:
        return ()
    gpus, wrong = named_gpus(machine, keys)
    if wrong or not gpus:
        summary = wrong[0].summary if wrong else "--gpus names no GPU"
        raise UsageProblem(summary, hint=wrong[0].fix if wrong else "--gpus 0,1")
    return tuple(gpu.uuid for gpu in gpus)


def _to_plan(request: PlanRequest, machine: Machine) -> PlanRequest:
    """The request as a plan can be made of it whatever is missing here; that it is, is for a check to say.

    A plain release is planned for by its number. A build of its own on this machine is asked itself, as `up` does:
    that takes seconds, but its number says too little about it.
    """
    found = machine.software.sglang if machine.software is not None else None
    if found is None:
        release = ENGINES[EngineName.SGLANG.value].NEWEST_RELEASE
    elif request.machine is None and not _PLAIN_RELEASE.fullmatch(found):
        return replace(request, dry_run=True)
    else:
        release = found.partition("+")[0]
    asked = request.engine_version
    return replace(request, dry_run=True, engine_version=release if asked is None else asked)


def facts_of(env: Env, made: Planned, request: PlanRequest) -> Facts:
    """The facts about a plan that is made already; the host's folders become those that its engine would use."""
    models = _models(env, made.loaded)
    settings = serving(made.plan.argv, speculates=made.plan.speculation, block_size=made.plan.block_size)
    facts = Facts(
        machine=_with_engine_folders(env, made, request),
        profile=made.profile,
        plan=made.plan,
        serving=settings,
        ports=_ports(env, made.plan) if request.machine is None else (),
        weights=tuple(model.disk for model in models),
        release_asked=request.engine_version is not None,
        install_hint=ENGINES[made.plan.engine].install_hint(made.plan.engine_version),
    )
    if not facts.on_sglang or not facts.gpus:
        return facts
    return replace(
        facts,
        fit=_fit(models, settings, facts.gpus, free=False),
        fit_now=_fit(models, settings, facts.gpus, free=True),
    )


def _with_engine_folders(env: Env, made: Planned, request: PlanRequest) -> Machine:
    """The machine with the folders that the plan's environment moves looked at where they then are."""
    host, planned_env = made.machine.host, dict(made.plan.env)
    if host is None or not moved(planned_env):
        return made.machine
    here = request.machine is None
    folders = env.machine.folders(planned_env) if here else unseen(host.folders, planned_env)
    return replace(made.machine, host=replace(host, folders=folders))


def weights_folder(env: Env, loaded: LoadedProfile) -> Path | None:
    """The folder of the target's weights, for measuring the disk."""
    role, ref = roles(loaded)[0]
    return expected_folder(env, loaded, role, ref)


def _fit(models: list[_Model], settings: Serving, gpus: tuple[Gpu, ...], *, free: bool) -> Fit:
    """For the smallest GPU of the plan; SGLang takes the minimum over its ranks as well."""
    sizes = [size for gpu in gpus if (size := _memory(gpu, free=free)) is not None]
    if len(sizes) < len(gpus):
        return untold_fit()
    target = models[0]
    draft = models[1] if len(models) > 1 else None
    return judge_fit(
        FitRequest(
            serving=settings,
            memory_bytes=min(sizes),
            target=target.geometry,
            target_weights_bytes=target.weights_bytes,
            draft=draft.geometry if draft else None,
            draft_weights_bytes=draft.weights_bytes if draft else None,
        )
    )


def _memory(gpu: Gpu, *, free: bool) -> int | None:
    usable = gpu.memory_usable_bytes
    if usable is None or not free or gpu.memory_free_bytes is None:
        return usable
    return min(usable, gpu.memory_free_bytes)


def _models(env: Env, loaded: LoadedProfile) -> list[_Model]:
    found = env.weight_store.find_lock(loaded.file.path, shipped=loaded.file.origin == "shipped")
    lock = found[1] if found else None
    models = []
    for role, ref in roles(loaded):
        entry = lock.fitting(role, ref) if lock else None
        locked = sum(f.size_bytes for f in entry.files if f.path.endswith(_WEIGHTS)) if entry else None
        models.append(_model(env, loaded, role, ref, locked))
    return models


def _model(env: Env, loaded: LoadedProfile, role: str, ref: ModelRef, locked: int | None) -> _Model:
    """Sizes from the best source there is: the lock, the index, the files, the profile, what is known."""
    folder = standing_folder(env, loaded, role, ref)
    known = KNOWN_MODELS.get(ref.repo or "")
    present = _present_bytes(env, folder)
    indexed = _indexed_bytes(env, folder)
    wanted = locked or indexed or (present if ref.path is not None else None) or ref.weights_bytes
    wanted = wanted or (known.weights_bytes if known else None)
    config = _config(env, folder)
    geometry = geometry_of(config) if config is not None else (known.geometry if known else None)
    return _Model(
        disk=WeightsOnDisk(label=ref.label, wanted_bytes=wanted, present_bytes=present),
        geometry=geometry,
        weights_bytes=wanted,
        folder=folder,
    )


def _present_bytes(env: Env, folder: Path | None) -> int:
    if folder is None:
        return 0
    try:
        files = env.weight_store.local_files(folder)
    except Permanent:
        return 0
    return sum(file.size_bytes for file in files if file.path.endswith(_WEIGHTS))


def _indexed_bytes(env: Env, folder: Path | None) -> int | None:
    text = env.weight_store.read_bytes(folder / _INDEX) if folder is not None else None
    try:
        size = json_loads(text)["metadata"]["total_size"] if text else None
    except (ValueError, KeyError, TypeError):
        return None
    return int(size) if isinstance(size, (int, float)) else None


def _config(env: Env, folder: Path | None) -> dict[str, object] | None:
    text = env.weight_store.read_bytes(folder / "config.json") if folder is not None else None
    try:
        config = json_loads(text) if text else None
    except ValueError:
        return None
    return config if isinstance(config, dict) else None


def _ports(env: Env, plan: Plan) -> tuple[PortUse, ...]:
    """The HTTP port, and those that the arguments pin; the engine finds free ones for the rest itself.

    A number that is no port is refused by the plan, so there is nothing to look at.
    """
    uses = [env.machine.port_use(plan.host, plan.port, "HTTP")] if 0 < plan.port <= MAX_PORT else []
    for place, word in enumerate(plan.argv[:-1]):
        purpose = dict(_PORT_OPTIONS).get(word)
        number = plan.argv[place + 1].rpartition(":")[2]
        if purpose and number.isdigit() and 0 < int(number) <= MAX_PORT:
            uses.append(env.machine.port_use("127.0.0.1", int(number), purpose))
    return tuple(uses)
