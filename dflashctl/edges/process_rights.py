"""What the kernel lets this process do to its siblings, which an engine started here gets as well."""

from __future__ import annotations

from pathlib import Path

from dflashctl.edges.text_file import read_text

# capability.h: CAP_SYS_PTRACE.
_SYS_PTRACE = 19
_STATUS = Path("/proc/self/status")


def has_sys_ptrace(status: Path = _STATUS) -> bool | None:
    """Whether CAP_SYS_PTRACE is among the effective capabilities; None when they cannot be read."""
    mask = _field(status, "CapEff", base=16)
    return None if mask is None else bool(mask >> _SYS_PTRACE & 1)


def under_seccomp(status: Path = _STATUS) -> bool | None:
    """Whether a seccomp filter stands before the system calls; None when the kernel does not tell."""
    mode = _field(status, "Seccomp", base=10)
    return None if mode is None else mode > 0


def _field(status: Path, name: str, *, base: int) -> int | None:
    for line in (read_text(status) or "").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value, base)
    return None
