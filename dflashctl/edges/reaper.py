"""Reaper: collects every child that ended, strays too, without losing the status of those we started."""

from __future__ import annotations

import ctypes
import os

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans(*, on: bool) -> None:
    """Make orphans below us our children instead of init's."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, int(on), 0, 0, 0)


class Reaper:
    """While it is in use nobody else in this process may wait for children."""

    def __init__(self) -> None:
        self._status: dict[int, int | None] = {}

    def track(self, pid: int) -> None:
        """Keep the status of that child until it is asked for."""
        self._status[pid] = None

    def tracked(self) -> frozenset[int]:
        return frozenset(self._status)

    def forget(self, pid: int) -> None:
        self._status.pop(pid, None)

    def status(self, pid: int) -> int | None:
        """As subprocess gives it: the exit status, or the signal's number negated; None while it runs."""
        self.reap()
        return self._status.get(pid)

    def reap(self) -> int:
        """Collect all that have ended; how many of them were strays."""
        strays = 0
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return strays
            if ended is None:
                return strays
            _, status = os.waitpid(ended.si_pid, 0)
            if ended.si_pid in self._status:
                self._status[ended.si_pid] = os.waitstatus_to_exitcode(status)
            else:
                strays += 1
