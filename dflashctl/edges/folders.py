"""The folders that weights, compiled kernels and dflashctl's own records go to: space, file system, right to write, stale locks."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.anonymous import shorten_home
from dflashctl.core.child_env import child_environment
from dflashctl.core.engine_folders import STATE, WEIGHTS, engine_folders
from dflashctl.core.host import Folder
from dflashctl.edges.places import is_usable, runtime_place, state_folder
from dflashctl.edges.room import free_bytes
from dflashctl.edges.silent import nearest, silent
from dflashctl.edges.text_file import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# torch.utils.cpp_extension holds a build by the mere presence of a file of this name; a killed build leaves it.
_BATON = "lock"
_STALE_AFTER_S = 900.0
# Root may write there, says access(2), but nobody can make a folder.
_KERNELS_OWN = {"proc", "sysfs", "cgroup2"}
_SCAN_DEPTH = 4
_SCAN_ENTRIES = 4000


def read_folders(environ: Mapping[str, str], planned: Mapping[str, str] | None = None) -> tuple[Folder, ...]:
    """The folders that an engine started from `environ` with `planned` set for it would use.

    Weights are fetched before, by this process: theirs is the folder of `environ`.
    """
    home = environ.get("HOME") or str(Path.home())
    engine = child_environment(
        environ, (planned or {}).items(), temporary=runtime_place(environ), host="127.0.0.1"
    )
    places = (
        (WEIGHTS, weights_folder(environ, home)),
        *engine_folders(engine, engine.get("HOME") or home),
        (STATE, str(state_folder(environ))),
    )
    mounts = _mounts()
    places = tuple((kind, os.path.expanduser(path)) for kind, path in places)
    dumb = silent(path for _, path in places)
    return tuple(
        Folder(kind=kind, path=shorten_home(path, home), file_system=_file_system(path, mounts), silent=True)
        if path in dumb
        else _folder(kind, path, home, mounts)
        for kind, path in places
    )


def weights_folder(environ: Mapping[str, str], home: str) -> str:
    """Where huggingface_hub keeps models, by its own order of variables."""
    base = environ.get("HF_HOME") or f"{environ.get('XDG_CACHE_HOME') or f'{home}/.cache'}/huggingface"
    return environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE") or f"{base}/hub"


def _folder(kind: str, path: str, home: str, mounts: list[tuple[str, str]]) -> Folder:
    real = os.path.realpath(path)
    standing = nearest(Path(real))
    file_system = _file_system(real, mounts)
    total = free = None
    try:
        info = os.statvfs(standing)
        total = info.f_blocks * info.f_frsize
        free = free_bytes(info) if kind == STATE else info.f_bavail * info.f_frsize
    except OSError:
        pass
    return Folder(
        kind=kind,
        path=shorten_home(path, home),
        free_bytes=free,
        total_bytes=total,
        file_system=file_system,
        writable=standing.is_dir()
        and os.access(standing, os.W_OK | os.X_OK)
        and file_system not in _KERNELS_OWN
        and (kind != STATE or is_usable(path)),
        exists=str(standing) == real,
        stale_locks=_stale_locks(Path(real)) if kind in {"flashinfer", "torch_extensions"} else 0,
    )


def _mounts() -> list[tuple[str, str]]:
    """Mount points and file system types, longest first (proc(5), mountinfo)."""
    found = []
    for line in (read_text("/proc/self/mountinfo") or "").splitlines():
        left, _, right = line.partition(" - ")
        if right:
            found.append((left.split()[4].replace("\\040", " "), right.split()[0]))
    return sorted(found, key=lambda pair: len(pair[0]), reverse=True)


def _file_system(path: str, mounts: list[tuple[str, str]]) -> str | None:
    inside = (kind for point, kind in mounts if path == point or path.startswith(point.rstrip("/") + "/"))
    return next(inside, None)


def _stale_locks(root: Path) -> int:
    newest = time.time() - _STALE_AFTER_S
    return sum(1 for entry in _entries(root) if entry.name == _BATON and entry.stat().st_mtime < newest)


def _entries(root: Path) -> Iterator[os.DirEntry[str]]:
    """Files below `root`, bounded in depth and number so that a huge cache cannot hold up the quick part."""
    folders, seen = [(str(root), 0)], 0
    while folders and seen < _SCAN_ENTRIES:
        folder, depth = folders.pop()
        try:
            with os.scandir(folder) as listing:
                entries = list(listing)
        except OSError:
            continue
        seen += len(entries)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if depth < _SCAN_DEPTH:
                    folders.append((entry.path, depth + 1))
            else:
                yield entry
