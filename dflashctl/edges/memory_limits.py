"""Memory limits: how often the kernel killed for memory in our control group."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")


def oom_kills(*, root: Path = _ROOT, membership: str | None = None) -> int | None:
    """The counter of our control group (version 2, else 1), None where it cannot be read."""
    if membership is None:
        try:
            membership = Path("/proc/self/cgroup").read_text(encoding="utf-8")
        except OSError:
            return None
    for path in _counters(root, membership):
        count = _count(path)
        if count is not None:
            return count
    return None


def _counters(root: Path, membership: str) -> list[Path]:
    """Candidates; inside a container the group's own path is the mount's root."""
    found = []
    for line in membership.splitlines():
        _, controllers, path = line.split(":", 2)
        inner = path.lstrip("/")
        if controllers == "":
            found += [root / inner / "memory.events", root / "memory.events"]
        elif "memory" in controllers.split(","):
            base = root / "memory"
            found += [base / inner / "memory.oom_control", base / "memory.oom_control"]
    return found


def _count(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="ascii")
    except OSError:
        return None
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return None
