"""The hub cache on disk, in its own layout: where files lie, what it knows offline, what dead transfers left.

Layout: models--ORG--NAME/{blobs,snapshots/COMMIT,refs,trees}, locks in .locks/models--ORG--NAME/BLOB.lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.json_text import json_loads
from dflashctl.core.model_files import Listing, ModelFile
from dflashctl.core.weights_lock import is_safe_path
from dflashctl.edges.hub_auth import expanded, hub_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PARTIAL = ".incomplete"
LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_SHA256_LENGTH = 64
_SHA1_LENGTH = 40
_BLOCK_BYTES = 1024 * 1024


def cache_folder(environ: Mapping[str, str]) -> Path:
    """HF_HUB_CACHE as the hub library resolves it."""
    named = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE")
    return expanded(named, environ) if named else hub_home(environ) / "hub"


def xet_folder(environ: Mapping[str, str]) -> Path:
    """HF_XET_CACHE as the hub library resolves it."""
    named = environ.get("HF_XET_CACHE")
    return Path(named) if named else hub_home(environ) / "xet"


def repo_folder(cache: Path, repo: str) -> Path:
    return cache / f"models--{repo.replace('/', '--')}"


def own_repository(folder: Path) -> Path | None:
    """The real place of a repository's folder; None when it, or where its contents lie, is a link out of the cache.

    What lies behind such a link belongs to another cache, whose transfers lock their files elsewhere.
    """
    real = Path(os.path.realpath(folder.parent)) / folder.name
    kept = all(os.path.realpath(real / part) == str(real / part) for part in ("blobs", "snapshots"))
    return real if kept else None


def snapshot_folder(cache: Path, repo: str, commit: str) -> Path:
    return repo_folder(cache, repo) / "snapshots" / commit


def cached_listing(cache: Path, repo: str, commit: str) -> Listing | None:
    """The library's own record of the tree when it is there and sane, else what the snapshot's links say."""
    recorded = _recorded_tree(repo_folder(cache, repo) / "trees" / f"{commit}.json")
    files = recorded if recorded is not None else _linked_files(snapshot_folder(cache, repo, commit))
    return Listing(repo=repo, commit=commit, files=files) if files else None


def stored_bytes(cache: Path, repo: str) -> int:
    """Bytes of all contents of a repository, partial ones included."""
    total = 0
    for entry in _entries(repo_folder(cache, repo) / "blobs"):
        with contextlib.suppress(OSError):  # renamed or removed since it was listed
            total += entry.stat().st_size
    return total


def partial_files(cache: Path, repo: str) -> tuple[Path, ...]:
    """What transfers into this cache left unfinished; a link is none, and nothing behind one is ours."""
    repository = own_repository(repo_folder(cache, repo))
    entries = _entries(repository / "blobs") if repository is not None else []
    return tuple(
        Path(e.path) for e in entries if e.name.endswith(PARTIAL) and e.is_file(follow_symlinks=False)
    )


def sweep(cache: Path, repo: str) -> int:
    """Remove partial files whose lock nobody holds; the bytes that freed."""
    freed = 0
    for path in partial_files(cache, repo):
        with unheld(cache, repo, path.name.split(".", 1)[0]) as free:
            if not free:
                continue
            try:
                size = path.stat().st_size
                path.unlink()
            except OSError:  # finished, or not ours to remove
                continue
            freed += size
    return freed


@contextlib.contextmanager
def unheld(cache: Path, repo: str, blob: str) -> Iterator[bool]:
    """Hold the library's own lock of a blob when nobody else does; False when somebody does."""
    folder = cache / ".locks" / repo_folder(cache, repo).name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / f"{blob}.lock", LOCK_FLAGS, 0o664)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def has_its_name(link: Path) -> bool:
    """Whether a cached file has the hash that its blob is named after: SHA-256 for big files, git's SHA-1 for small."""
    name = os.path.basename(os.path.realpath(link))
    if not link.is_symlink() or len(name) not in {_SHA256_LENGTH, _SHA1_LENGTH}:
        return False
    try:
        with link.open("rb") as stream:
            digest = hashlib.sha256()
            if len(name) == _SHA1_LENGTH:
                size = os.fstat(stream.fileno()).st_size
                digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
            while block := stream.read(_BLOCK_BYTES):
                digest.update(block)
            return digest.hexdigest() == name
    except OSError:
        return False


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []


def _recorded_tree(path: Path) -> tuple[ModelFile, ...] | None:
    """`{"files": {path: {size, blob_id, lfs_sha256, lfs_size}}}` in every release that writes it; None if not so."""
    try:
        data = json_loads(path.read_text(encoding="utf-8"))
        entries = data.get("files", data.get("entries", data))
        return tuple(_recorded_file(name, entry) for name, entry in entries.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _recorded_file(name: str, entry: Mapping[str, object]) -> ModelFile:
    sha256, git = entry.get("lfs_sha256"), entry.get("blob_id")
    size = entry.get("lfs_size") or entry["size"]
    if not isinstance(size, int) or not is_safe_path(name):
        raise TypeError(name)
    return ModelFile(
        path=name,
        size_bytes=size,
        sha256=str(sha256) if sha256 else None,
        git_sha1=str(git) if git and not sha256 else None,
    )


def _linked_files(snapshot: Path) -> tuple[ModelFile, ...]:
    """Each link's blob is named after its hash: SHA-256 for big files, git's SHA-1 for small ones."""
    found: list[ModelFile] = []
    for folder, _, names in os.walk(snapshot):
        for name in names:
            path = Path(folder) / name
            blob = os.path.basename(os.readlink(path)) if path.is_symlink() else ""
            if not os.path.exists(path):
                continue
            found.append(
                ModelFile(
                    path=path.relative_to(snapshot).as_posix(),
                    size_bytes=path.stat().st_size,
                    sha256=blob if len(blob) == _SHA256_LENGTH else None,
                    git_sha1=blob if len(blob) == _SHA1_LENGTH else None,
                )
            )
    return tuple(sorted(found, key=lambda f: f.path))
