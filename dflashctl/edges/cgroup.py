"""Limits of this process's control group, version 2 or 1, the tightest on the way to the root."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dflashctl.edges.text_file import read_int, read_text

_ROOT = Path("/sys/fs/cgroup")
# Version 1 writes "no limit" as the largest page-aligned number.
_V1_UNLIMITED = 1 << 60


@dataclass(frozen=True, kw_only=True)
class CgroupLimits:
    """None is both "no limit" and "no control groups here": either way nothing binds."""

    memory_max_bytes: int | None = None
    memory_used_bytes: int | None = None
    pids_max: int | None = None


def cgroup_limits(root: Path = _ROOT, own: str | None = None) -> CgroupLimits:
    """The limits that bind this process; `own` is the text of /proc/self/cgroup."""
    text = own if own is not None else read_text("/proc/self/cgroup") or ""
    groups = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]  # noqa: PLR2004
    v2 = next((path for _, names, path in groups if not names), None)
    if v2 is not None and (root / "cgroup.controllers").exists():
        return _v2(root, v2)
    memory = next((path for _, names, path in groups if "memory" in names.split(",")), None)
    return _v1(root / "memory", memory) if memory is not None else CgroupLimits()


def _v2(root: Path, path: str) -> CgroupLimits:
    folders = _ancestors(root, path)
    limited = [
        (limit, folder) for folder in folders if (limit := read_int(folder / "memory.max")) is not None
    ]
    tightest = min(limited, default=None)
    return CgroupLimits(
        memory_max_bytes=tightest[0] if tightest else None,
        memory_used_bytes=read_int(tightest[1] / "memory.current") if tightest else None,
        pids_max=_tightest(folders, "pids.max"),
    )


def _v1(root: Path, path: str) -> CgroupLimits:
    folders = _ancestors(root, path)
    limits = [
        (limit, folder)
        for folder in folders
        if (limit := read_int(folder / "memory.limit_in_bytes")) is not None and limit < _V1_UNLIMITED
    ]
    tightest = min(limits, default=None)
    return CgroupLimits(
        memory_max_bytes=tightest[0] if tightest else None,
        memory_used_bytes=read_int(tightest[1] / "memory.usage_in_bytes") if tightest else None,
        pids_max=_tightest(_ancestors(root.parent / "pids", path), "pids.max"),
    )


def _tightest(folders: list[Path], name: str) -> int | None:
    return min((value for folder in folders if (value := read_int(folder / name)) is not None), default=None)


def _ancestors(root: Path, path: str) -> list[Path]:
    """The group's folder and those above it; in a container the own path may not exist, the root does."""
    own = root / path.lstrip("/")
    chain = [own, *own.parents]
    return [folder for folder in chain if folder.is_relative_to(root) and folder.is_dir()]
