"""GuardProcess: the supervisor's side of the guard."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.instance import Identity
    from dflashctl.edges.reaper import Reaper

_PROGRAM = Path(__file__).with_name("guard.py")


class GuardProcess:
    """Starts the guard, tells it which sessions to end should we die, and replaces it should it die.

    `label` is seen in process lists and means nothing to the guard.
    """

    def __init__(self, reaper: Reaper, label: str) -> None:
        self._label = label
        self._reaper = reaper
        self._sessions: dict[int, Identity] = {}
        self._pid = 0
        self._pipe = -1

    @property
    def pid(self) -> int:
        return self._pid

    def start(self) -> None:
        reader, self._pipe = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-E", str(_PROGRAM), self._label],
            stdin=reader,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
        )
        os.close(reader)
        self._pid = process.pid
        process.returncode = 0  # the reaper collects it, not subprocess
        self._reaper.track(self._pid)

    def watch(self, session: Identity) -> None:
        if session.pid not in self._sessions:
            self._sessions[session.pid] = session
            self._tell(f"watch {session.pid} {session.start_ticks}\n")

    def clear(self) -> None:
        self._sessions.clear()
        self._tell("clear\n")

    def check(self) -> bool:
        """Replace a guard that died; whether that was needed."""
        if self._pid == 0 or self._reaper.status(self._pid) is None:
            return False
        self._drop()
        self.start()
        known, self._sessions = self._sessions, {}
        for session in known.values():
            self.watch(session)
        return True

    def dismiss(self) -> None:
        """The goodbye: nothing is left to guard."""
        if self._pid == 0:
            return
        self._tell("bye\n")
        self._drop()

    def _tell(self, line: str) -> None:
        if self._pipe >= 0:
            with contextlib.suppress(OSError):
                os.write(self._pipe, line.encode())

    def _drop(self) -> None:
        self._reaper.forget(self._pid)
        os.close(self._pipe)
        self._pipe, self._pid = -1, 0
