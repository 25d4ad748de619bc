"""Stacks: what the server's processes were doing when they were given up, as far as it can be seen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_LIMIT_S = 5.0
_MOST_PYTHON = 2
_MOST = 64


def dump_stacks(pids: Iterable[int]) -> str:
    """Python stacks by py-spy where it is installed, and what the kernel says each thread waits for."""
    spy = shutil.which("py-spy")
    chosen = sorted(pids)[:_MOST]
    parts = [_kernel(pid) for pid in chosen]
    # Each may take seconds, and the stop waits for them: the main process and its first worker must do.
    parts += [_python(spy, pid) for pid in chosen[:_MOST_PYTHON]] if spy else []
    note = (
        ""
        if spy
        else "py-spy is not installed, so there are no Python stacks: python3 -m pip install py-spy\n\n"
    )
    return note + "\n".join(parts)


def _kernel(pid: int) -> str:
    lines = [f"== pid {pid} =="]
    for thread in sorted(Path(f"/proc/{pid}/task").glob("*"), key=lambda p: int(p.name)):
        name, state = _read(thread / "comm"), _state(thread)
        lines.append(f"{thread.name} {name} {state} waits in {_read(thread / 'wchan') or '?'}")
    return "\n".join(lines) + "\n"


def _state(thread: Path) -> str:
    fields = _read(thread / "stat").rpartition(")")[2].split()
    return fields[0] if fields else "?"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _python(spy: str, pid: int) -> str:
    try:
        done = subprocess.run(
            [spy, "dump", "--pid", str(pid)], capture_output=True, text=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"py-spy: {error}\n"
    return f"== py-spy {pid} ==\n{done.stdout}{done.stderr}"
