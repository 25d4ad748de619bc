"""What the worker asks of huggingface_hub: listings, small files and transfers, with retries and resuming."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import (
    HfApi,
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    set_client_factory,
)
from huggingface_hub.errors import FileMetadataError
from huggingface_hub.file_download import http_get
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import (  # type: ignore[attr-defined]
    build_hf_headers,
    get_session,
    hf_raise_for_status,
)

from dflashctl.core.retry import asked_wait_s
from dflashctl.edges.hub_cache import partial_files, repo_folder, unheld
from dflashctl.edges.hub_failures import describe, failures, patiently

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    Say = Callable[..., None]

# The library writes whole chunks only: smaller ones keep what is on disk close to what arrived.
_CHUNK_BYTES = 1024 * 1024
_SOCKET_READ_BYTES = 256 * 1024
_READ_LIMIT_BYTES = 64 * 1024 * 1024
_READ_TIMEOUT_S = 30.0
_LEAST_RESUMED_BYTES = 4 * _CHUNK_BYTES
_seen: set[str] = set()


@dataclass(frozen=True, kw_only=True)
class Account:
    """`token` False sends none, whatever the machine has stored."""

    token: str | bool
    cache: str
    attempts: int


@dataclass(frozen=True, kw_only=True)
class WantedFile:
    repo: str
    commit: str
    path: str
    size_bytes: int
    blob: str | None


def prepare(say: Say) -> None:
    """Make the library report waiting times and write in small chunks."""
    constants.DOWNLOAD_CHUNK_SIZE = _CHUNK_BYTES
    _read_in_larger_pieces()
    plain = type(get_session())
    hooks = get_session().event_hooks

    def watch(response: Any) -> None:
        wait = asked_wait_s(response.headers, time.time()) if response.status_code in {429, 503} else None
        if response.headers.get(constants.HUGGINGFACE_HEADER_X_XET_HASH):
            _seen.add("xet")
        if wait is not None:
            say("waiting", seconds=wait, status=response.status_code)

    def client() -> Any:
        made = plain(follow_redirects=True, timeout=None)
        made.event_hooks = {"request": hooks["request"], "response": [*hooks["response"], watch]}
        return made

    set_client_factory(client)


def _read_in_larger_pieces() -> None:
    """Half the CPU of a transfer is the HTTP client asking its socket for 64 KiB at a time; harmless where it differs."""
    client = type(get_session()).__module__.split(".")[0]
    core = sys.modules.get(client.replace("httpx", "httpcore"))
    connection = getattr(core, "HTTP11Connection", None)
    if connection is not None and hasattr(connection, "READ_NUM_BYTES"):
        connection.READ_NUM_BYTES = _SOCKET_READ_BYTES


def came_by_xet() -> bool:
    """Whether any file so far was offered by Xet and taken that way."""
    return uses_xet() and "xet" in _seen


def uses_xet() -> bool:
    return not constants.HF_HUB_DISABLE_XET and find_spec("hf_xet") is not None


def listing(account: Account, repo: str, revision: str | None) -> dict[str, object]:
    """Two calls: what the revision means, and the whole tree of that commit."""
    api = HfApi(token=account.token)
    info = api.model_info(repo, revision=revision, token=account.token, timeout=_READ_TIMEOUT_S)
    if not isinstance(info.sha, str):
        raise FileMetadataError("the answer names no commit")
    tree = api.list_repo_tree(repo, recursive=True, revision=info.sha, token=account.token)
    files = [_tree_entry(entry) for entry in tree if isinstance(entry, RepoFile)]
    return {"repo": info.id or repo, "commit": info.sha, "files": files}


def read(account: Account, repo: str, commit: str, path: str) -> bytes:
    """The content of a small file, which proves that this account may read it."""
    headers = build_hf_headers(token=account.token)
    headers["Accept-Encoding"] = "identity"
    url = hf_hub_url(repo, path, revision=commit)
    answer = get_session().get(url, headers=headers, timeout=_READ_TIMEOUT_S, follow_redirects=True)
    hf_raise_for_status(answer)
    if len(answer.content) > _READ_LIMIT_BYTES:
        raise ValueError(f"{path} has {len(answer.content)} bytes")
    return bytes(answer.content)


def wanted_files(orders: object) -> list[WantedFile]:
    """Small files first, so that configs and tokenizers are there while weights still arrive."""
    files = [
        WantedFile(
            repo=order["repo"],
            commit=order["commit"],
            path=f["path"],
            size_bytes=f["size_bytes"],
            blob=f["blob"],
        )
        for order in (orders if isinstance(orders, list) else [])
        for f in order["files"]
    ]
    return sorted(files, key=lambda f: (f.size_bytes > _LEAST_RESUMED_BYTES, f.repo, f.path))


def bring(account: Account, file: WantedFile, say: Say, stop: threading.Event) -> None:
    """One file into the cache, tried again as long as that is worth it; a full disk stops the others too."""
    if stop.is_set():
        return
    try:
        patiently(lambda: _download(account, file), say, account.attempts, listed=True)
    except failures() as error:
        told = describe(error)
        if told["kind"] in {"no_room", "read_only"}:
            stop.set()
        say("failed", repo=file.repo, path=file.path, **told)
    else:
        say("file", repo=file.repo, path=file.path)


def _tree_entry(entry: RepoFile) -> dict[str, object]:
    lfs = entry.lfs
    return {
        "path": entry.path,
        "size_bytes": lfs.size if lfs else entry.size,
        "sha256": lfs.sha256 if lfs else None,
        "git_sha1": None if lfs else entry.blob_id,
    }


def _download(account: Account, file: WantedFile) -> None:
    _finish_partial(account, file)
    hf_hub_download(file.repo, file.path, revision=file.commit, cache_dir=account.cache, token=account.token)


def _finish_partial(account: Account, file: WantedFile) -> None:
    """Go on where a killed transfer ended: recent releases of the library would begin at zero.

    Only a partial file without holes that nobody holds is taken; what comes out is proven by its hash like any other.
    """
    if file.blob is None or file.size_bytes < _LEAST_RESUMED_BYTES:
        return
    cache = Path(account.cache)
    blob = repo_folder(cache, file.repo) / "blobs" / file.blob
    if blob.exists() or not _partials(cache, file):
        return
    with unheld(cache, file.repo, file.blob) as free:
        usable = _partials(cache, file) if free else []
        if usable and not _comes_by_xet(account, file):
            done, path = max(usable)
            _continue(account, file, path, done)
            path.replace(blob)


def _partials(cache: Path, file: WantedFile) -> list[tuple[int, Path]]:
    """(bytes, path) of what dead transfers left of `file`."""
    found = [p for p in partial_files(cache, file.repo) if p.name.startswith(f"{file.blob}.")]
    return [(p.stat().st_size, p) for p in found if _is_solid(p, file.size_bytes)]


def _comes_by_xet(account: Account, file: WantedFile) -> bool:
    """Xet fetches by content and cannot go on from a plain prefix."""
    url = hf_hub_url(file.repo, file.path, revision=file.commit)
    return uses_xet() and get_hf_file_metadata(url, token=account.token).xet_file_data is not None


def _is_solid(path: Path, size_bytes: int) -> bool:
    status = path.stat()
    return _LEAST_RESUMED_BYTES <= status.st_size < size_bytes and status.st_blocks * 512 >= status.st_size


def _continue(account: Account, file: WantedFile, path: Path, done: int) -> None:
    headers = build_hf_headers(token=account.token)
    url = hf_hub_url(file.repo, file.path, revision=file.commit)
    with path.open("r+b") as stream:
        stream.seek(0, os.SEEK_END)
        http_get(url, stream, resume_size=done, headers=headers, expected_size=file.size_bytes)
