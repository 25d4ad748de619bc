"""Guard: outlives the supervisor by a moment and kills the server's sessions when it went without a goodbye.

Also a program of its own (`python -I -S guard.py`), so it imports nothing but the standard library. Commands come as
lines on standard input: `watch SESSION TICKS`, `clear`, `bye`; end of file without `bye` means that the supervisor died.
A session is meant only while it is proven the server's: by its leader, started at TICKS, or by the mark that the shim
puts into the server's environment. A mark also finds the processes that made a session nobody has heard of yet.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import NamedTuple

MARK = "DFLASHCTL_SERVER"
DEADLINE_S = 10.0
_PAUSE_S = 0.005


class Stat(NamedTuple):
    """One process as /proc/PID/stat shows it; `state` "Z" and "X" are dead ones."""

    pid: int
    comm: str
    state: str
    parent: int
    session: int
    ticks: int

    @property
    def dead(self) -> bool:
        return self.state in "ZX"


def read_stat(pid: int) -> Stat | None:
    """The process with that pid, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return None
    left, _, right = text.rpartition(")")
    fields = right.split()
    comm = left.partition("(")[2]
    return Stat(pid, comm, fields[0], int(fields[1]), int(fields[3]), int(fields[19]))


def processes() -> list[Stat]:
    """Every process that can be seen."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [stat for pid in pids if (stat := read_stat(pid)) is not None]


def marks_of(sessions: dict[int, int]) -> frozenset[bytes]:
    """What the environment of a server's processes holds when its main process is one of those leaders."""
    return frozenset(f"{MARK}={pid}:{ticks}".encode() for pid, ticks in sessions.items())


def bears(pid: int, marks: frozenset[bytes]) -> bool:
    """Whether the program of that process was started with one of the marks."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return not marks.isdisjoint(file.read().split(b"\0"))
    except OSError:
        return False


def members(
    session: int, ticks: int, table: list[Stat] | None = None, marks: frozenset[bytes] | None = None
) -> list[Stat]:
    """The living members of that session; none when its number is somebody else's by now, or our own.

    A daemon's session often outlives its leader, so without a leader one member must bear a mark (by default that of
    the session itself): as long as it lives, the kernel gives the session's number to nobody else.
    """
    if session in {0, 1, os.getsid(0)}:
        return []
    found = [stat for stat in (processes() if table is None else table) if stat.session == session]
    leaders = [stat for stat in found if stat.pid == session]
    living = [stat for stat in found if not stat.dead]
    if leaders:
        return living if leaders[0].ticks == ticks else []
    marks = marks_of({session: ticks}) if marks is None else marks
    return living if any(bears(stat.pid, marks) for stat in living) else []


def ours(sessions: dict[int, int], table: list[Stat] | None = None) -> list[Stat]:
    """The living members of those sessions, and whoever bears their mark in another one, ours excepted."""
    table = processes() if table is None else table
    marks, own = marks_of(sessions), os.getsid(0)
    found = {s.pid: s for pid, ticks in sessions.items() for s in members(pid, ticks, table, marks)}
    for stat in table if sessions else ():
        if stat.session != own and not stat.dead and stat.pid not in found and bears(stat.pid, marks):
            found[stat.pid] = stat
    return list(found.values())


def send(stat: Stat, number: int) -> bool:
    """Signal exactly that process: through a pidfd, checked again after the pidfd is held."""
    try:
        handle = os.pidfd_open(stat.pid)
    except OSError:
        return False
    try:
        now = read_stat(stat.pid)
        if now is None or (now.ticks, now.session) != (stat.ticks, stat.session):
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def kill_sessions(sessions: dict[int, int], deadline_s: float = DEADLINE_S) -> list[Stat]:
    """Kill until nothing of those sessions lives; those that survive `deadline_s` are returned."""
    end = time.monotonic() + deadline_s
    while True:
        left = ours(sessions)
        if not left or time.monotonic() > end:
            return left
        for stat in left:
            send(stat, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def watch(lines: object) -> None:
    """Follow the commands to their end, then do the duty of the last of them."""
    sessions: dict[int, int] = {}
    for line in lines:  # type: ignore[attr-defined]
        word, *numbers = line.split()
        if word == "watch":
            sessions[int(numbers[0])] = int(numbers[1])
        elif word == "clear":
            sessions.clear()
        elif word == "bye":
            return
    kill_sessions(sessions)


def main() -> None:
    for number in (
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGTSTP,
        signal.SIGTTIN,
        signal.SIGTTOU,
    ):
        signal.signal(number, signal.SIG_IGN)
    watch(sys.stdin)


if __name__ == "__main__":
    main()
