"""The load generator's own pulse: loop lag, CPU time, memory, late sends."""

from __future__ import annotations

import os
import resource
import sys
from array import array
from time import monotonic

TICK_S = 0.01
_LATE_S = 0.001


class Pulse:
    """Ticks every 10 ms; how late the loop comes to a tick is how long an arriving chunk could have waited."""

    __slots__ = (
        "_cpu",
        "_start",
        "connect_s",
        "lags_s",
        "late_max_s",
        "late_sends",
        "next_tick_s",
        "reconnects",
        "sends",
    )

    def __init__(self) -> None:
        self.lags_s = array("f")
        self.connect_s = array("f")
        self.sends = 0
        self.late_sends = 0
        self.late_max_s = 0.0
        self.reconnects = 0
        self.begin(monotonic())

    def begin(self, now_s: float) -> None:
        """The measured span starts: forget the warm-up, keep the connect times."""
        self._start = now_s
        self._cpu = cpu_s()
        self.next_tick_s = now_s + TICK_S
        self.lags_s = array("f")
        self.sends = self.late_sends = self.reconnects = 0
        self.late_max_s = 0.0

    def tick(self, now_s: float) -> None:
        """Note the lag of every tick that is due: those missed in a stall count too, each with its own wait."""
        while self.next_tick_s <= now_s:
            self.lags_s.append(now_s - self.next_tick_s)
            self.next_tick_s += TICK_S

    def sent(self, intended_s: float, sent_s: float, *, free: bool) -> None:
        """A request went out; `free` when nothing but this process could hold it back."""
        self.sends += 1
        late = sent_s - intended_s
        if free and late > _LATE_S:
            self.late_sends += 1
            self.late_max_s = max(self.late_max_s, late)

    def figures(self) -> dict[str, object]:
        """For the parent process, which merges those of all processes."""
        wall, cpu = monotonic() - self._start, cpu_s() - self._cpu
        return {
            "cpu_s": cpu,
            "wall_s": wall,
            "lags_s": self.lags_s.tobytes().hex(),
            "connect_s": self.connect_s.tobytes().hex(),
            "sends": self.sends,
            "late_sends": self.late_sends,
            "late_max_s": self.late_max_s,
            "reconnects": self.reconnects,
            "memory_bytes": memory_bytes(),
            "pid": os.getpid(),
        }


def cpu_s() -> float:
    """User and system time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory_bytes() -> int:
    """The largest resident size of this program so far.

    Linux's getrusage also remembers the program that started this one, so /proc is asked first (VmHWM, in KiB).
    """
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"VmHWM:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
