"""Gathering for fetch and up: what each model needs, where it lies, and whether the two belong together."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.commands.weights_engine import engine_findings
from dflashctl.commands.weights_source import (
    Source,
    Wishes,
    asked_first,
    find_source,
    is_offline,
    right_on_disk,
    small_file,
)
from dflashctl.core.errors import Permanent
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.json_text import json_loads
from dflashctl.core.model_config import ModelConfig, indexed_shards, parse_config_text
from dflashctl.core.model_files import CONFIG, INDEX, CodeFile
from dflashctl.core.pair import Pair, fc_finding, pair_findings
from dflashctl.core.profile import Algorithm, ModelRef
from dflashctl.core.selection import Selection, choose, lacking_shards
from dflashctl.core.weights import ModelPlan
from dflashctl.core.weights_lock import LockedModel, code_changes, difference, is_commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.weights_lock import Lock
    from dflashctl.env import Env
    from dflashctl.ports.hub import TokenRules
    from dflashctl.ports.profiles import LoadedProfile

_DRAFT_WEIGHTS = "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """All that is decided from; `configs` are those of the models in the same order."""

    models: tuple[ModelPlan, ...]
    configs: tuple[ModelConfig, ...]
    findings: tuple[Finding, ...]
    lock: Lock | None
    lock_path: Path | None
    rules: TokenRules


def gather(env: Env, loaded: LoadedProfile, wishes: Wishes) -> Gathered:
    """Both models, from the lock when it fits, else from the Hub; refuses a pair that does not fit."""
    found = env.weight_store.find_lock(loaded.file.path, shipped=loaded.file.origin == "shipped")
    lock = found[1] if found else None
    models: list[ModelPlan] = []
    configs: list[ModelConfig] = []
    findings: list[Finding] = []
    for role, ref in roles(loaded):
        entry = _fitting(loaded, role, ref, found, wishes)
        source = find_source(env, loaded, role, ref, entry, wishes)
        model, config, more = _model(env, source, wishes)
        _agree_to_code(role, model, entry or (lock.own(role) if lock else None), wishes, loaded.words)
        models.append(model)
        configs.append(config)
        findings += more
    if len(models) > 1:
        findings += pair_of(env, loaded, configs, Path(models[1].folder))
    findings += engine_findings(loaded.profile, models, configs, wishes.build)
    return Gathered(
        models=tuple(models),
        configs=tuple(configs),
        findings=tuple(findings),
        lock=lock,
        lock_path=found[0] if found else None,
        rules=wishes.rules,
    )


def roles(loaded: LoadedProfile) -> tuple[tuple[str, ModelRef], ...]:
    """The models that the profile serves: the draft only when it speculates."""
    profile = loaded.profile
    if profile.draft is None or profile.speculative.algorithm is Algorithm.NONE:
        return (("target", profile.target),)
    return (("target", profile.target), ("draft", profile.draft))


def expected_folder(env: Env, loaded: LoadedProfile, role: str, ref: ModelRef) -> Path | None:
    """Where that model lies or will lie, without network; None when only the Hub knows its commit."""
    if ref.path is not None:
        return env.profiles.model_path(loaded.file, ref.path)
    commit = ref.revision if is_commit(ref.revision) else None
    if commit is None:
        found = env.weight_store.find_lock(loaded.file.path, shipped=loaded.file.origin == "shipped")
        entry = found[1].fitting(role, ref) if found else None
        commit = entry.commit if entry is not None else None
    return env.hub.snapshot(ref.repo or "", commit) if commit else None


def standing_folder(env: Env, loaded: LoadedProfile, role: str, ref: ModelRef) -> Path | None:
    """The expected folder if it can be looked into; None for one whose file system does not answer."""
    folder = expected_folder(env, loaded, role, ref)
    return folder if folder is not None and env.weight_store.answers(asked_first(env, ref, folder)) else None


def _fitting(
    loaded: LoadedProfile,
    role: str,
    ref: ModelRef,
    found: tuple[Path, Lock] | None,
    wishes: Wishes,
) -> LockedModel | None:
    path, lock = found or (None, None)
    if lock is None:
        return None
    fitting, own = lock.fitting(role, ref), lock.own(role)
    if fitting is not None or own is None or wishes.renew:
        return fitting
    raise Permanent(
        f"the lock {str(path)!r} does not fit {'these options' if loaded.overrides(role) else 'the profile'}: "
        f"{difference(ref, own)}",
        hint=f"dflashctl fetch {loaded.words}",
    )


def _model(env: Env, source: Source, wishes: Wishes) -> tuple[ModelPlan, ModelConfig, list[Finding]]:
    """The plan of one model. The small files read here also prove that this account may read the repository."""
    config_text = small_file(env, source, CONFIG, wishes)
    config = parse_config_text(config_text) if config_text is not None else None
    if config is None:
        raise Permanent(
            f"{CONFIG} of {source.ref.label!r} is not a model's config", detail=str(source.folder)
        )
    chosen, findings = _selection(env, source, wishes)
    reports = env.weight_store.look(source.folder, chosen.chosen)
    model = ModelPlan(
        role=source.role,
        label=source.ref.label,
        repo=source.ref.repo,
        commit=source.listing.commit,
        folder=str(source.folder),
        files=reports,
        left_out=chosen.left_out,
        code=_hashed_code(env, source, chosen, wishes),
        source=source.kind,
        writable=source.kind == "hub",
        locked=source.entry is not None,
    )
    return model, config, findings + _unknown_until_now(source)


def _selection(env: Env, source: Source, wishes: Wishes) -> tuple[Selection, list[Finding]]:
    if source.entry is not None:
        return _locked_selection(env, source, source.entry, wishes), []
    files = source.listing.files
    indexed = _indexed(source, small_file(env, source, INDEX, wishes))
    absent = lacking_shards(files, source.ref, indexed)
    if absent:
        raise Permanent(
            f"{source.ref.label!r} lacks {len(absent)} of its shards: {', '.join(absent[:4])}",
            hint="use another commit, or fetch the missing shards"
            if source.kind == "local"
            else "use another commit",
        )
    chosen = choose(files, source.ref, indexed)
    if not any(f.path.endswith(".safetensors") for f in chosen.chosen):
        raise Permanent(
            f"{source.ref.label!r} has no safetensors weights",
            hint="name pickled files literally in allow_patterns if you trust them",
        )
    return chosen, _moved(source)


def _locked_selection(env: Env, source: Source, entry: LockedModel, wishes: Wishes) -> Selection:
    """What the lock says, which must be all: a shard that it lacks would never be looked at again.

    An index that is wrong on disk is not asked here: the proof of all files says so.
    """
    asked = source.kind == "hub" and not is_offline(env, wishes)
    index = small_file(env, source, INDEX, wishes) if asked else right_on_disk(env, source, INDEX)
    absent = lacking_shards(entry.files, source.ref, _indexed(source, index))
    if absent:
        raise Permanent(
            f"the lock lacks {len(absent)} of the shards of {source.ref.label!r}: {', '.join(absent[:4])}",
            hint="put the lock back as it was, or remove it and fetch again",
            detail=f"{INDEX} names them" if index is not None else "the names of the others count them",
        )
    if not any(f.path.endswith(".safetensors") for f in entry.files):
        raise Permanent(
            f"the lock has no weights of {source.ref.label!r}",
            hint="put the lock back as it was, or remove it and fetch again",
        )
    return Selection(chosen=entry.files, code=entry.code)


def _indexed(source: Source, index: bytes | None) -> tuple[str, ...] | None:
    """The shards that the index names; None when there is no index."""
    if index is None:
        return None
    try:
        indexed = indexed_shards(json_loads(index))
    except ValueError:
        indexed = None
    if indexed is None:
        raise Permanent(f"{INDEX} of {source.ref.label!r} is no safetensors index")
    return indexed


def _unknown_until_now(source: Source) -> list[Finding]:
    if source.kind != "local" or source.entry is not None:
        return []
    return [
        Finding(
            id="weights.first_record",
            severity=Severity.NOTE,
            summary=f"the files of {source.ref.label} are recorded as they are: there is nothing to compare them with",
            detail="the lock that a fetch writes holds them to this content",
        )
    ]


def _moved(source: Source) -> list[Finding]:
    if source.listing.moved_to is None:
        return []
    return [
        Finding(
            id="weights.renamed",
            severity=Severity.WARNING,
            summary=f"{source.ref.repo} is now called {source.listing.moved_to}",
            fix=f"change {source.role}.repo in the profile",
        )
    ]


def _hashed_code(env: Env, source: Source, chosen: Selection, wishes: Wishes) -> tuple[CodeFile, ...]:
    """Code is shown and compared by its SHA-256 before anything is fetched; the Hub's listing has none for it."""
    known = []
    for code in chosen.code:
        content = small_file(env, source, code.path, wishes) if code.sha256 is None else None
        known.append(
            replace(code, sha256=hashlib.sha256(content).hexdigest()) if content is not None else code
        )
    return tuple(known)


def _agree_to_code(
    role: str, model: ModelPlan, agreed: LockedModel | None, wishes: Wishes, profile: str
) -> None:
    changes = code_changes(agreed, model.code) if agreed is not None and model.code else ()
    if not changes or wishes.accept_code:
        return
    listed = "\n".join(f"{c.path}  sha256 {c.sha256 or 'known after the fetch'}" for c in model.code)
    raise Permanent(
        f"the code that {role} {model.label!r} brings changed since you agreed to it: {', '.join(changes)}",
        hint=f"dflashctl fetch {profile} --accept-code",
        detail=listed,
    )


def pair_of(
    env: Env, loaded: LoadedProfile, configs: Sequence[ModelConfig], draft_folder: Path
) -> tuple[Finding, ...]:
    """Whether target and draft, in this order, belong together."""
    (_, target), (_, draft) = roles(loaded)
    pair = Pair(
        target=configs[0],
        draft=configs[1],
        target_name=target.label,
        draft_name=draft.label,
        profile=loaded.profile,
    )
    shape = env.weight_store.tensor_shape(draft_folder / _DRAFT_WEIGHTS, "fc.weight")
    return (*pair_findings(pair), *fc_finding(pair, shape))
