"""Where a model comes from: the lock, a local folder, the cache or the Hub, and its small files, never unproven."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.errors import CheckFailed, Permanent, Unavailable
from dflashctl.core.model_files import Listing, ModelFile
from dflashctl.core.profile import BUILTIN, ModelRef
from dflashctl.core.progress import Progress
from dflashctl.core.proof import judged_bytes
from dflashctl.core.weights_lock import LockedModel, is_commit
from dflashctl.ports.hub import TokenRules, TransferEvent

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dflashctl.core.engine import EngineBuild
    from dflashctl.env import Env
    from dflashctl.ports.profiles import LoadedProfile


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """How far to go: `renew` replaces a lock that no longer fits the profile, which only `fetch` does.

    `build` is the engine that will run, None when that is not known yet.
    """

    rules: TokenRules = TokenRules()  # noqa: RUF009 - frozen
    offline: bool = False
    renew: bool = False
    accept_code: bool = False
    build: EngineBuild | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """One model before its files are looked at: `content` holds small files that came from the Hub."""

    role: str
    ref: ModelRef
    entry: LockedModel | None
    folder: Path
    listing: Listing
    kind: str


def asked_first(env: Env, ref: ModelRef, folder: Path) -> Path:
    """The folder whose file system must answer before that of a model is looked into."""
    return folder if ref.path is not None else env.hub.cache()


def _answering(env: Env, ref: ModelRef, folder: Path) -> Path:
    """`folder`, or Unavailable instead of waiting for ever, deaf to Ctrl-C, for a network disk whose server is away."""
    asked = asked_first(env, ref, folder)
    if env.weight_store.answers(asked):
        return folder
    raise Unavailable(
        f"the file system of {str(asked)!r} does not answer, and {ref.label!r} lies there",
        hint="look at its mount and at the server behind it (dmesg)"
        + (", or point HF_HUB_CACHE at another folder" if ref.path is None else ""),
    )


def find_source(
    env: Env, loaded: LoadedProfile, role: str, ref: ModelRef, entry: LockedModel | None, wishes: Wishes
) -> Source:
    if ref.path is not None:
        folder = _local_folder(env, loaded, role, ref, ref.path)
        files = entry.files if entry is not None else env.weight_store.local_files(folder)
        kind = "builtin" if ref.path.startswith(BUILTIN) else "local"
        listing = Listing(repo=ref.path, commit=None, files=files)
        return Source(role=role, ref=ref, entry=entry, folder=folder, listing=listing, kind=kind)
    repo = ref.repo or ""
    if ref.trust_remote_code and not is_commit(ref.revision):
        raise Permanent(
            f"{role}.trust_remote_code needs a full commit, and {role}.revision is {ref.revision!r}",
            hint="pin the 40-digit commit whose code you have read",
        )
    _answering(env, ref, env.hub.cache())
    listing = _listing(env, role, ref, entry, wishes)
    folder = env.hub.snapshot(repo, listing.commit or "")
    return Source(role=role, ref=ref, entry=entry, folder=folder, listing=listing, kind="hub")


def _local_folder(env: Env, loaded: LoadedProfile, role: str, ref: ModelRef, path: str) -> Path:
    folder = _answering(env, ref, env.profiles.model_path(loaded.file, path))
    if not os.path.isdir(folder):
        raise Permanent(
            f"{role}.path {path!r} of profile {loaded.profile.name!r} is not there: {str(folder)!r} is no folder",
            hint=f"put the model there, or change {role}.path in {loaded.file.path}",
        )
    return folder


def _listing(env: Env, role: str, ref: ModelRef, entry: LockedModel | None, wishes: Wishes) -> Listing:
    repo = ref.repo or ""
    if entry is not None:
        return Listing(repo=repo, commit=entry.commit, files=entry.files)
    if not is_offline(env, wishes):
        return env.hub.listing(repo, ref.revision, wishes.rules, _teller(env))
    listing = env.hub.cached_listing(repo, ref.revision or "") if is_commit(ref.revision) else None
    if listing is None:
        raise Unavailable(
            f"offline, and nothing of {role} {repo!r} at {ref.revision!r} is in the cache {str(env.hub.cache())!r}",
            hint="run it once without --offline, or point HF_HUB_CACHE at a cache that has it",
        )
    return listing


def small_file(env: Env, source: Source, path: str, wishes: Wishes) -> bytes | None:
    """A small file from disk when what lies there is right, else from the Hub, never unproven."""
    expected = next((f for f in source.listing.files if f.path == path), None)
    if expected is None:
        return None
    content = right_on_disk(env, source, path)
    if content is not None:
        return content
    if source.kind != "hub":
        raise CheckFailed(
            f"{path} of {source.ref.label!r} is not what the lock says", detail=str(source.folder / path)
        )
    return _read_from_hub(env, source, expected, wishes)


def right_on_disk(env: Env, source: Source, path: str) -> bytes | None:
    """A small file that lies there as it should be; never from the Hub."""
    expected = next((f for f in source.listing.files if f.path == path), None)
    content = env.weight_store.read_bytes(source.folder / path) if expected is not None else None
    right = expected is not None and content is not None and judged_bytes(expected, content).usable
    return content if right else None


def is_offline(env: Env, wishes: Wishes) -> bool:
    return wishes.offline or env.hub.access(wishes.rules).offline


def _read_from_hub(env: Env, source: Source, expected: ModelFile, wishes: Wishes) -> bytes:
    repo, commit = source.ref.repo or "", source.listing.commit or ""
    if is_offline(env, wishes):
        raise Unavailable(
            f"offline, and {expected.path} of {repo!r} is missing or wrong in {str(source.folder)!r}",
            hint="run it once without --offline",
        )
    content = env.hub.read(repo, commit, expected.path, wishes.rules, _teller(env))
    verdict = judged_bytes(expected, content)
    if (
        not verdict.usable
        and source.entry is not None
        and _is_listed(env, source, expected.path, content, wishes)
    ):
        raise CheckFailed(
            f"the lock is wrong, or the Hub: {expected.path} of {repo!r} is as the Hub lists it, but not as the lock says",
            hint="put the lock back as it was; if the Hub is right, remove the lock and fetch again",
            detail=verdict.detail,
        )
    if not verdict.usable:
        raise Unavailable(
            f"the Hub gives something else for {expected.path} of {repo!r}: {verdict.detail}",
            hint="check HF_ENDPOINT, the proxy, and whether that network wants a login",
        )
    return content


def _is_listed(env: Env, source: Source, path: str, content: bytes, wishes: Wishes) -> bool:
    """Whether the Hub's own listing of that commit agrees with what it gave."""
    listing = env.hub.listing(source.ref.repo or "", source.listing.commit, wishes.rules, _teller(env))
    listed = next((f for f in listing.files if f.path == path), None)
    return listed is not None and judged_bytes(listed, content).usable


def _teller(env: Env) -> Callable[[TransferEvent], None]:
    def tell(event: TransferEvent) -> None:
        if event.note is not None:
            env.notify(Progress(step="hub", text=event.note))

    return tell
