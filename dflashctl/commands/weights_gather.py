"""Gathering for fetch and up: what each model needs, where it lies, and whether the two belong together."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import CheckFailed, Permanent, Unavailable
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.model_config import ModelConfig, indexed_shards, parse_config_text
from dflashctl.core.model_files import CONFIG, INDEX, FileReport, FileStatus, Listing, ModelFile
from dflashctl.core.pair import Pair, fc_finding, pair_findings
from dflashctl.core.profile import BUILTIN, Algorithm, ModelRef
from dflashctl.core.proof import judged_bytes
from dflashctl.core.selection import Selection, choose, missing_shards
from dflashctl.core.weights import ModelPlan
from dflashctl.core.weights_lock import LockedModel, code_changes, difference, is_commit
from dflashctl.ports.hub import TokenRules

if TYPE_CHECKING:
    from dflashctl.core.weights_lock import Lock
    from dflashctl.env import Env
    from dflashctl.ports.profiles import LoadedProfile

_DRAFT_WEIGHTS = "model.safetensors"


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How far to go: `renew` replaces a lock that no longer fits the profile, which only `fetch` does."""

    rules: TokenRules = TokenRules()  # noqa: RUF009 - frozen
    offline: bool = False
    renew: bool = False
    accept_code: bool = False


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """All that is decided from; `configs` are those of the models in the same order."""

    models: tuple[ModelPlan, ...]
    configs: tuple[ModelConfig, ...]
    findings: tuple[Finding, ...]
    lock: Lock | None
    lock_path: Path | None
    rules: TokenRules


@dataclass(frozen=True, kw_only=True)
class _Source:
    """One model before its files are looked at: `content` holds small files that came from the Hub."""

    role: str
    ref: ModelRef
    entry: LockedModel | None
    folder: Path
    listing: Listing
    kind: str


def gather(env: Env, loaded: LoadedProfile, wishes: Wishes) -> Gathered:
    """Both models, from the lock when it fits, else from the Hub; refuses a pair that does not fit."""
    found = env.weight_store.find_lock(loaded.file.path, shipped=loaded.file.origin == "shipped")
    lock = found[1] if found else None
    models: list[ModelPlan] = []
    configs: list[ModelConfig] = []
    findings: list[Finding] = []
    for role, ref in roles(loaded):
        entry = _fitting(loaded, role, ref, found, wishes)
        source = _source(env, loaded, role, ref, entry, wishes)
        model, config, more = _model(env, source, wishes)
        _agree_to_code(role, model, _entry(lock, role), wishes, loaded.profile.name)
        models.append(model)
        configs.append(config)
        findings += more
    findings += _pair(env, loaded, models, configs)
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
        entry = _entry(found[1], role) if found else None
        commit = entry.commit if entry is not None and difference(ref, entry) is None else None
    return env.hub.snapshot(ref.repo or "", commit) if commit else None


def _entry(lock: Lock | None, role: str) -> LockedModel | None:
    if lock is None:
        return None
    return lock.target if role == "target" else lock.draft


def _fitting(
    loaded: LoadedProfile,
    role: str,
    ref: ModelRef,
    found: tuple[Path, Lock] | None,
    wishes: Wishes,
) -> LockedModel | None:
    entry = _entry(found[1], role) if found else None
    if entry is None or found is None:
        return None
    problem = difference(ref, entry)
    if problem is None:
        return entry
    if wishes.renew:
        return None
    raise Permanent(
        f"the lock {str(found[0])!r} does not fit the profile: {problem}",
        hint=f"dflashctl fetch {loaded.profile.name}",
    )


def _source(
    env: Env, loaded: LoadedProfile, role: str, ref: ModelRef, entry: LockedModel | None, wishes: Wishes
) -> _Source:
    if ref.path is not None:
        folder = _local_folder(env, loaded, role, ref.path)
        files = entry.files if entry is not None else env.weight_store.local_files(folder)
        kind = "builtin" if ref.path.startswith(BUILTIN) else "local"
        listing = Listing(repo=ref.path, commit=None, files=files)
        return _Source(role=role, ref=ref, entry=entry, folder=folder, listing=listing, kind=kind)
    repo = ref.repo or ""
    if ref.trust_remote_code and not is_commit(ref.revision):
        raise Permanent(
            f"{role}.trust_remote_code needs a full commit, and {role}.revision is {ref.revision!r}",
            hint="pin the 40-digit commit whose code you have read",
        )
    listing = _listing(env, role, ref, entry, wishes)
    folder = env.hub.snapshot(repo, listing.commit or "")
    return _Source(role=role, ref=ref, entry=entry, folder=folder, listing=listing, kind="hub")


def _local_folder(env: Env, loaded: LoadedProfile, role: str, path: str) -> Path:
    folder = env.profiles.model_path(loaded.file, path)
    if not folder.is_dir():
        raise Permanent(
            f"{role}.path {path!r} of profile {loaded.profile.name!r} is not there: {str(folder)!r} is no folder",
            hint=f"put the model there, or change {role}.path in {loaded.file.path}",
        )
    return folder


def _listing(env: Env, role: str, ref: ModelRef, entry: LockedModel | None, wishes: Wishes) -> Listing:
    repo = ref.repo or ""
    if entry is not None:
        return Listing(repo=repo, commit=entry.commit, files=entry.files)
    if not (wishes.offline or env.hub.access(wishes.rules).offline):
        return env.hub.listing(repo, ref.revision, wishes.rules)
    listing = env.hub.cached_listing(repo, ref.revision or "") if is_commit(ref.revision) else None
    if listing is None:
        raise Unavailable(
            f"offline, and nothing of {role} {repo!r} at {ref.revision!r} is in the cache {str(env.hub.cache())!r}",
            hint="run it once without --offline, or point HF_HUB_CACHE at a cache that has it",
        )
    return listing


def _model(env: Env, source: _Source, wishes: Wishes) -> tuple[ModelPlan, ModelConfig, list[Finding]]:
    """The plan of one model. The small files read here also prove that this account may read the repository."""
    config_text = _small(env, source, CONFIG, wishes)
    config = parse_config_text(config_text) if config_text is not None else None
    if config is None:
        raise Permanent(
            f"{CONFIG} of {source.ref.label!r} is not a model's config", detail=str(source.folder)
        )
    chosen, findings = _selection(env, source, wishes)
    reports = _looked_at(env, source, chosen)
    model = ModelPlan(
        role=source.role,
        label=source.ref.label,
        repo=source.ref.repo,
        commit=source.listing.commit,
        folder=str(source.folder),
        files=reports,
        left_out=chosen.left_out,
        code=tuple(replace(c, sha256=c.sha256 or _sha_of(reports, c.path)) for c in chosen.code),
        source=source.kind,
        writable=source.kind == "hub",
    )
    return model, config, findings


def _selection(env: Env, source: _Source, wishes: Wishes) -> tuple[Selection, list[Finding]]:
    if source.entry is not None:
        code = source.entry.code
        return Selection(chosen=source.entry.files, code=code), []
    files = source.listing.files
    index = _small(env, source, INDEX, wishes) if any(f.path == INDEX for f in files) else None
    try:
        indexed = indexed_shards(json.loads(index)) if index is not None else None
    except ValueError:
        indexed = None
    if index is not None and indexed is None:
        raise Permanent(f"{INDEX} of {source.ref.label!r} is no safetensors index")
    absent = missing_shards(files, indexed or ())
    if absent:
        raise Permanent(
            f"{source.ref.label!r} lacks {len(absent)} of the shards that its index names: {', '.join(absent[:4])}",
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


def _moved(source: _Source) -> list[Finding]:
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


def _looked_at(env: Env, source: _Source, chosen: Selection) -> tuple[FileReport, ...]:
    reports = env.weight_store.look(source.folder, chosen.chosen)
    if source.kind == "builtin":
        # They come with the package, whose installer checked them; the cheap look is what is left to do.
        return tuple(
            replace(r, status=FileStatus.VERIFIED) if r.status is FileStatus.UNVERIFIED else r
            for r in reports
        )
    if source.kind == "local" and source.entry is None:
        # The listing was made from the folder itself: a link to nothing has the size -1 there.
        return tuple(r for r in reports)
    return reports


def _sha_of(reports: tuple[FileReport, ...], path: str) -> str | None:
    return next((r.file.sha256 or r.sha256 for r in reports if r.file.path == path), None)


def _small(env: Env, source: _Source, path: str, wishes: Wishes) -> bytes | None:
    """A small file from disk when what lies there is right, else from the Hub, never unproven."""
    expected = next((f for f in source.listing.files if f.path == path), None)
    if expected is None:
        return None
    content = env.weight_store.read_bytes(source.folder / path)
    if content is not None and judged_bytes(expected, content).usable:
        return content
    if source.kind != "hub":
        raise CheckFailed(
            f"{path} of {source.ref.label!r} is not what the lock says", detail=str(source.folder / path)
        )
    return _read_from_hub(env, source, expected, wishes)


def _read_from_hub(env: Env, source: _Source, expected: ModelFile, wishes: Wishes) -> bytes:
    repo, commit = source.ref.repo or "", source.listing.commit or ""
    if wishes.offline or env.hub.access(wishes.rules).offline:
        raise Unavailable(
            f"offline, and {expected.path} of {repo!r} is missing or wrong in {str(source.folder)!r}",
            hint="run it once without --offline",
        )
    content = env.hub.read(repo, commit, expected.path, wishes.rules)
    verdict = judged_bytes(expected, content)
    if not verdict.usable:
        raise Unavailable(
            f"the Hub gives something else for {expected.path} of {repo!r}: {verdict.detail}",
            hint="check HF_ENDPOINT, the proxy, and whether that network wants a login",
        )
    return content


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


def _pair(
    env: Env, loaded: LoadedProfile, models: list[ModelPlan], configs: list[ModelConfig]
) -> tuple[Finding, ...]:
    if len(models) < 2:  # noqa: PLR2004 - a pair
        return ()
    pair = Pair(
        target=configs[0],
        draft=configs[1],
        target_name=models[0].label,
        draft_name=models[1].label,
        profile=loaded.profile,
    )
    shape = env.weight_store.tensor_shape(Path(models[1].folder) / _DRAFT_WEIGHTS, "fc.weight")
    return (*pair_findings(pair), *fc_finding(pair, shape))
