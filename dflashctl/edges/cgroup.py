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
    groups = _groups(own)
    if (unified := _unified(root, groups)) is not None:
        return _v2(root, unified)
    memory = groups.get("memory")
    return _v1(root / "memory", memory) if memory is not None else CgroupLimits()


def cpu_quota(root: Path = _ROOT, own: str | None = None) -> float | None:
    """How many cores' worth of time this process may use, None without a limit; `own` as for `cgroup_limits`."""
    groups = _groups(own)
    if (unified := _unified(root, groups)) is not None:
        pairs = [(read_text(folder / "cpu.max") or "").split() for folder in _ancestors(root, unified)]
    elif (path := groups.get("cpu")) is not None:
        names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        folders = _ancestors(root / "cpu", path)
        pairs = [[(read_text(folder / name) or "").strip() for name in names] for folder in folders]
    else:
        return None
    shares = (_share(*pair) for pair in pairs if len(pair) == 2)  # noqa: PLR2004 - quota and period
    return min((share for share in shares if share is not None), default=None)


def _share(quota: str, period: str) -> float | None:
    """Microseconds a period; "max" and -1 are no limit."""
    if not (quota.isdigit() and period.isdigit() and int(quota) and int(period)):
        return None
    return int(quota) / int(period)


def _groups(own: str | None) -> dict[str, str]:
    """The group of each controller of this process; "" names the unified hierarchy of version 2."""
    text = own if own is not None else read_text("/proc/self/cgroup") or ""
    lines = [line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2]  # noqa: PLR2004
    return {name: path for _, names, path in lines for name in names.split(",")}


def _unified(root: Path, groups: dict[str, str]) -> str | None:
    """The group where version 2 is in charge; beside version 1 it has no controllers."""
    return groups.get("") if (root / "cgroup.controllers").exists() else None


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
