"""Processes: who a process is, whether it is still the same, and signals that never reach a stranger."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.instance import Identity
from dflashctl.edges import guard

if TYPE_CHECKING:
    from collections.abc import Iterable


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino


def identify(pid: int) -> Identity | None:
    """The identity of the process that has this pid now."""
    stat = guard.read_stat(pid)
    if stat is None:
        return None
    return Identity(
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        pid=pid,
        start_ticks=stat.ticks,
        session=stat.session,
    )


def is_here(identity: Identity) -> bool:
    """Whether its numbers mean anything here: same boot, same pid namespace."""
    return (identity.boot_id, identity.pid_namespace) == (boot_id(), pid_namespace())


def is_alive(identity: Identity) -> bool:
    stat = guard.read_stat(identity.pid) if is_here(identity) else None
    return stat is not None and stat.ticks == identity.start_ticks and not stat.dead


def send(identity: Identity, number: int) -> bool:
    """Signal that very process; False when it is gone or a stranger has its pid."""
    if not is_here(identity):
        return False
    stat = guard.read_stat(identity.pid)
    return stat is not None and stat.ticks == identity.start_ticks and guard.send(stat, number)


def session_members(sessions: Iterable[Identity]) -> tuple[guard.Stat, ...]:
    """The living processes of the server with those sessions, as far as they belong to this boot and namespace."""
    return tuple(guard.ours(_here(sessions)))


def unproven_members(sessions: Iterable[Identity]) -> tuple[guard.Stat, ...]:
    """Those in a session of such a number whose leader is gone, and that nothing shows to be the server's."""
    table, here = guard.processes(), _here(sessions)
    led = {stat.pid for stat in table if stat.pid in here}
    proven = {stat.pid for stat in guard.ours(here, table)}
    return tuple(
        stat
        for stat in table
        if stat.session in here
        and not stat.dead
        and stat.session not in led | {0, 1, os.getsid(0)}
        and stat.pid not in proven
    )


def kill_sessions(
    sessions: Iterable[Identity], deadline_s: float = guard.DEADLINE_S
) -> tuple[guard.Stat, ...]:
    """Kill every process of that server; those that survive are returned."""
    numbers = _here(sessions)
    return tuple(guard.kill_sessions(numbers, deadline_s)) if numbers else ()


def command_of(pid: int) -> str | None:
    """The command line as one string, or the name in brackets when it has none."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    text = b" ".join(words).decode("utf-8", "replace").strip()
    if text:
        return text
    stat = guard.read_stat(pid)
    return f"[{stat.comm}]" if stat else None


def _here(sessions: Iterable[Identity]) -> dict[int, int]:
    return {s.pid: s.start_ticks for s in sessions if is_here(s)}
