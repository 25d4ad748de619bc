"""Activity: signs that processes work although they say nothing: bytes read from disk, compilers' CPU time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.edges.guard import Stat

_COMPILERS = frozenset(
    ["nvcc", "cicc", "ptxas", "fatbinary", "ninja", "cc1plus", "cc1", "g++", "gcc", "ld", "clang", "cudafe++"]
)
_MEBIBYTE = 1024 * 1024
_UTIME, _STIME = 11, 12  # fields of /proc/PID/stat counted from the state


def activity_of(processes: Iterable[Stat]) -> int:
    """A number that changes while they read (by the mebibyte) or compile; what may not be seen counts as 0."""
    total = 0
    for stat in processes:
        total += _read_bytes(stat.pid) // _MEBIBYTE
        if stat.comm in _COMPILERS:
            total += _cpu_ticks(stat.pid)
    return total


def _read_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return next((int(line[12:]) for line in text.splitlines() if line.startswith("read_bytes: ")), 0)


def _cpu_ticks(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    fields = text.rpartition(")")[2].split()
    return int(fields[_UTIME]) + int(fields[_STIME])
