"""LocalServer: the server as a process of this host, in a session of its own, started through the shim."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.edges import guard, processes, sockets
from dflashctl.edges.activity import activity_of
from dflashctl.edges.memory_limits import oom_kills
from dflashctl.ports.server import StartRefused, is_passing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.instance import Identity
    from dflashctl.core.plan import Plan
    from dflashctl.edges.reaper import Reaper

_PROGRAM = Path(__file__).with_name("shim.py")
_EXEC_LIMIT_S = 30.0


class LocalLauncher:
    def __init__(self, reaper: Reaper) -> None:
        self._reaper = reaper
        self._baseline = frozenset(stat.pid for stat in guard.processes() if stat.parent == os.getpid())

    def prepare(self, plan: Plan, env: Mapping[str, str], folder: Path) -> LocalServer:  # noqa: ARG002 - see Launcher
        out_reader, out_writer, go_reader, go_writer, status_reader, status_writer = _pipes(3)
        shim = [
            sys.executable,
            "-I",
            "-S",
            "-E",
            str(_PROGRAM),
            str(os.getpid()),
            str(go_reader),
            str(status_writer),
        ]
        try:
            process = subprocess.Popen(
                [*shim, *plan.argv],
                stdin=subprocess.DEVNULL,
                stdout=out_writer,
                stderr=out_writer,
                pass_fds=(go_reader, status_writer),
                env=dict(env),
            )
        except (OSError, ValueError) as error:
            for descriptor in (out_reader, go_writer, status_reader):
                os.close(descriptor)
            raise _refused(error) from error
        finally:
            for descriptor in (out_writer, go_reader, status_writer):
                os.close(descriptor)
        process.returncode = 0  # the reaper collects it, not subprocess
        self._reaper.track(process.pid)
        if os.read(status_reader, 1) != b"s":
            for descriptor in (out_reader, go_writer, status_reader):
                os.close(descriptor)
            raise StartRefused("the server's session could not be made")
        try:
            return LocalServer(
                pid=process.pid,
                program=plan.argv[0],
                host=plan.host,
                descriptors=(out_reader, go_writer, status_reader),
                reaper=self._reaper,
                baseline=self._baseline,
            )
        except BaseException as error:
            # Without a word to go the shim ends by itself.
            for descriptor in (out_reader, go_writer, status_reader):
                os.close(descriptor)
            self._reaper.forget(process.pid)
            if isinstance(error, OSError):
                raise _refused(error) from error
            raise


class LocalServer:
    """`log_descriptor` belongs to whoever pumps it; the other descriptors are closed by `close`."""

    container = None

    def __init__(
        self,
        *,
        pid: int,
        program: str,
        host: str,
        descriptors: tuple[int, int, int],
        reaper: Reaper,
        baseline: frozenset[int],
    ) -> None:
        self.log_descriptor, self._go, self._status = descriptors
        self._pid = pid
        self._program = program
        self._host = host
        self._reaper = reaper
        self._baseline = baseline
        self._oom_before = oom_kills()
        self.identity = _identity(pid)
        self._sessions: dict[int, Identity] = {pid: self.identity}
        self.exit_descriptor = os.pidfd_open(pid)

    def go(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._go, b"g")
        ready, _, _ = select.select([self._status], [], [], _EXEC_LIMIT_S)
        problem = os.read(self._status, 4096).decode("utf-8", "replace") if ready else ""
        if problem:
            _, _, text = problem.partition("\n")
            raise StartRefused(f"{self._program!r} cannot be started: {text.lower()}")

    def poll(self) -> int | None:
        return self._reaper.status(self._pid)

    def sessions(self) -> tuple[Identity, ...]:
        # Only a leader inside the tree makes a session the server's: any other holds strangers, perhaps ourselves.
        for stat in self._tree(guard.processes()):
            if stat.pid == stat.session and stat.pid not in self._sessions:
                self._sessions[stat.pid] = replace(
                    self.identity, pid=stat.pid, start_ticks=stat.ticks, session=stat.session
                )
        return tuple(self._sessions.values())

    def terminate(self) -> None:
        processes.send(self.identity, signal.SIGTERM)

    def kill(self) -> None:
        for stat in self._living():
            guard.send(stat, signal.SIGKILL)

    def leftovers(self) -> tuple[int, ...]:
        return tuple(stat.pid for stat in self._living())

    def foreign_listener(self, port: int) -> str | None:
        foreign = set(sockets.listening_inodes(port, self._host)) - self._socket_inodes(port)
        if not foreign:
            return None
        held = [listener for listener in sockets.listeners(port, self._host) if listener.inode in foreign]
        return held[0].describe() if held else None

    def listens(self, port: int) -> bool:
        return bool(self._socket_inodes(port))

    def activity(self) -> int:
        return activity_of(self._tree(guard.processes()))

    def oom_kills(self) -> int | None:
        after = oom_kills()
        return after - self._oom_before if after is not None and self._oom_before is not None else None

    def close(self) -> None:
        for descriptor in (self._go, self._status, self.exit_descriptor):
            os.close(descriptor)
        self._reaper.forget(self._pid)

    def _socket_inodes(self, port: int) -> set[int]:
        """Those of our tree among the sockets that listen on the port."""
        wanted = set(sockets.listening_inodes(port, self._host))
        if not wanted:
            return set()
        return {
            inode for stat in self._living() for inode in sockets.socket_inodes(stat.pid) if inode in wanted
        }

    def _living(self) -> list[guard.Stat]:
        """Members of our sessions, descendants elsewhere, and orphans that have come to us."""
        table = guard.processes()
        sessions = {known.pid: known.start_ticks for known in self._sessions.values()}
        marks = guard.marks_of(sessions)
        found = {s.pid: s for pid, ticks in sessions.items() for s in guard.members(pid, ticks, table, marks)}
        found |= {stat.pid: stat for stat in self._tree(table)}
        return list(found.values())

    def _tree(self, table: list[guard.Stat]) -> list[guard.Stat]:
        """The server with all its descendants, and all descendants of ours that nobody accounts for."""
        keep = (self._reaper.tracked() | self._baseline) - {self._pid}
        below: dict[int, list[guard.Stat]] = {}
        for stat in table:
            below.setdefault(stat.parent, []).append(stat)
        found, queue = [], [stat for stat in below.get(os.getpid(), ()) if stat.pid not in keep]
        while queue:
            stat = queue.pop()
            queue += below.get(stat.pid, ())
            if not stat.dead:
                found.append(stat)
        return found


def _identity(pid: int) -> Identity:
    found = processes.identify(pid)
    if found is None:
        raise StartRefused("the server ended before it began")
    return replace(found, session=pid)


def _pipes(count: int) -> list[int]:
    """Reader and writer of each."""
    made: list[int] = []
    try:
        for _ in range(count):
            made += os.pipe()
    except OSError as error:
        for descriptor in made:
            os.close(descriptor)
        raise _refused(error) from error
    return made


def _refused(error: OSError | ValueError) -> StartRefused:
    passing = isinstance(error, OSError) and is_passing(error)
    return StartRefused(f"the server cannot be started: {error}", permanent=not passing)
