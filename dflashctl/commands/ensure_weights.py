"""What a start needs of the weights: both models whole, proven and a pair, or a clear reason why not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.weights_bring import Errand, Tally, bring, prove, refuse_bad
from dflashctl.commands.weights_gather import (
    Gathered,
    expected_folder,
    gather,
    pair_of,
    roles,
    standing_folder,
)
from dflashctl.commands.weights_source import Wishes
from dflashctl.core.errors import Permanent, Unavailable
from dflashctl.core.findings import errors
from dflashctl.core.model_config import parse_config_text
from dflashctl.core.model_files import CONFIG, FileStatus, ModelFile
from dflashctl.core.weights import LocalModel, ModelPlan, Weights, WeightsPlan, plan_findings
from dflashctl.core.weights_lock import Lock, locked
from dflashctl.ports.hub import TokenRules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dflashctl.core.engine import EngineBuild, ModelFacts
    from dflashctl.core.findings import Finding
    from dflashctl.core.model_config import ModelConfig
    from dflashctl.env import Env
    from dflashctl.ports.profiles import LoadedProfile


def ensure_weights(
    env: Env,
    loaded: LoadedProfile,
    *,
    offline: bool = False,
    skip: bool = False,
    rules: TokenRules | None = None,
    build: EngineBuild | None = None,
) -> Weights:
    """Both models, ready to serve; plans first, then fetches, proves and locks what is not there yet.

    `offline` never asks the network. `skip` (as in --skip-fetch) neither fetches nor hashes: the models must be
    there and pass the cheap check. `build` is the engine, which must have classes for both. Raises Permanent (78),
    Unavailable (69) or CheckFailed (1).
    """
    wishes = Wishes(offline=offline or skip, rules=rules or TokenRules(), build=build)
    try:
        gathered = gather(env, loaded, wishes)
        refuse(gathered, None)
        models = gathered.models
        if any(m.wanted for m in models):
            models = fetched(env, loaded, gathered, models, Errand(wishes=wishes, tally=Tally()))
        elif not skip:
            models = prove(env, models, Tally())
        refuse_bad(env, models, loaded.words, gathered.lock_path)
        if not skip:
            write_lock(env, loaded, gathered, models)
    finally:
        env.hub.close()
    return _weights(models, gathered)


def known_facts(env: Env, loaded: LoadedProfile) -> Mapping[str, ModelFacts]:
    """Facts of "target" and "draft" from configs that are already on disk: no network, no hashing, no error."""
    return {role: config.facts for role, _, config in _known_configs(env, loaded)}


def known_pair(env: Env, loaded: LoadedProfile) -> tuple[Finding, ...]:
    """Whether the two models belong together, as far as what is already on disk tells; in the same way."""
    known = tuple(_known_configs(env, loaded))
    if len(known) < 2:  # noqa: PLR2004 - a pair
        return ()
    return pair_of(env, loaded, [config for _, _, config in known], known[1][1])


def _known_configs(env: Env, loaded: LoadedProfile) -> Iterator[tuple[str, Path, ModelConfig]]:
    for role, ref in roles(loaded):
        folder = standing_folder(env, loaded, role, ref)
        text = env.weight_store.read_bytes(folder / CONFIG) if folder is not None else None
        config = parse_config_text(text) if text is not None else None
        if folder is not None and config is not None:
            yield role, folder, config


def expected_folders(env: Env, loaded: LoadedProfile) -> Mapping[str, str]:
    """Model label → the folder that the engine will be given, whether it is there yet or not."""
    found = ((ref.label, expected_folder(env, loaded, role, ref)) for role, ref in roles(loaded))
    return {label: str(folder) for label, folder in found if folder is not None}


def plan_of(env: Env, gathered: Gathered) -> WeightsPlan:
    """The plan as it stands before anything is fetched."""
    hub = any(m.source == "hub" for m in gathered.models)
    access = env.hub.access(gathered.rules)
    return WeightsPlan(
        models=gathered.models,
        room=env.weight_store.room(env.hub.cache()) if hub else None,
        xet_room=env.weight_store.room(env.hub.xet_cache()) if hub and access.xet else None,
        access=access,
        rate_bytes_per_s=env.weight_store.rate(),
    )


def refuse(gathered: Gathered, plan: WeightsPlan | None) -> None:
    """Permanent with the first reason against this pair or this fetch, and all of them as its detail."""
    against = errors((*gathered.findings, *(plan_findings(plan) if plan is not None else ())))
    if against:
        lines = [f"{f.summary}{f' ({f.detail})' if f.detail else ''}" for f in against]
        raise Permanent(against[0].summary, hint=against[0].fix, detail="\n".join(lines))


def missing_offline(models: tuple[ModelPlan, ...]) -> None:
    """Unavailable that says exactly what is missing."""
    lines = [
        f"{m.folder}/{r.file.path}: {r.detail or r.status.value}"
        for m in models
        for r in m.files
        if not r.usable
    ]
    if lines:
        total = sum(m.wanted_bytes for m in models)
        raise Unavailable(
            f"offline, and {len(lines)} files with {total} bytes are missing or bad",
            hint="run it once without --offline",
            detail="\n".join(lines[:50]),
        )


def roomy_plan(env: Env, gathered: Gathered) -> WeightsPlan:
    """The plan, made again after a sweep when only what dead transfers left stands in its way."""
    plan = plan_of(env, gathered)
    if errors(plan_findings(plan)) and sum(env.hub.sweep(m.repo) for m in gathered.models if m.repo):
        plan = plan_of(env, gathered)
    return plan


def write_lock(
    env: Env, loaded: LoadedProfile, gathered: Gathered, models: tuple[ModelPlan, ...]
) -> Path | None:
    """Write the lock when it would say something new; models inside the package need none."""
    if all(m.source == "builtin" for m in models):
        return None
    lock = replace(gathered.lock or Lock(profile=loaded.profile.name), profile=loaded.profile.name)
    for (role, ref), m in zip(roles(loaded), models, strict=True):
        entry = locked(ref, m.commit, _proven_files(m))
        lock = lock.with_entry(role, ref, entry, own=not loaded.overrides(role))
    if lock == gathered.lock and gathered.lock_path is not None:
        return gathered.lock_path
    return env.weight_store.write_lock(loaded.file.path, lock, shipped=loaded.file.origin == "shipped")


def fetched(
    env: Env, loaded: LoadedProfile, gathered: Gathered, models: tuple[ModelPlan, ...], errand: Errand
) -> tuple[ModelPlan, ...]:
    """The models with all that was missing, after every reason not to begin was asked for."""
    refuse_bad(env, models, loaded.words, gathered.lock_path)
    if errand.wishes.offline or env.hub.access(errand.wishes.rules).offline:
        missing_offline(models)
    refuse(gathered, roomy_plan(env, replace(gathered, models=models)))
    return bring(env, models, errand)


def _proven_files(model: ModelPlan) -> tuple[ModelFile, ...]:
    return tuple(
        replace(r.file, sha256=r.file.sha256 or r.sha256)
        for r in model.files
        if r.status is FileStatus.VERIFIED
    )


def _weights(models: tuple[ModelPlan, ...], gathered: Gathered) -> Weights:
    ready = [_local(m, c) for m, c in zip(models, gathered.configs, strict=True)]
    return Weights(target=ready[0], draft=ready[1] if len(ready) > 1 else None, findings=gathered.findings)


def _local(model: ModelPlan, config: ModelConfig) -> LocalModel:
    return LocalModel(
        label=model.label,
        repo=model.repo,
        commit=model.commit,
        folder=model.folder,
        facts=config.facts,
        bytes=model.total_bytes,
        code=model.code,
    )
