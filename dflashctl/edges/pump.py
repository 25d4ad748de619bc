"""Pump: drains the server's output without ever making it wait, into the log and to whoever listens."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from dflashctl.core.log_line import stamp
from dflashctl.core.log_stream import FlowLimit, Line, LineSplitter

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.core.redact import Redactor
    from dflashctl.edges.log_file import LogFile

PIPE_BYTES = 1024 * 1024
_F_SETPIPE_SZ = 1031  # not named in the fcntl module of every build
_READ_BYTES = 256 * 1024
_IDLE_S = 0.2
_TAIL_LINES = 400
_QUEUE_LINES = 4000


class Pump:
    """One thread that only reads one pipe. `wake` is called after new lines; `show` must not block.

    `label` says what a line is stamped with.

    The last lines are kept for `evidence`, those not yet taken for `take`; both are bounded.
    """

    def __init__(
        self,
        *,
        log: LogFile,
        redact: Redactor,
        label: Callable[[str], str],
        show: Callable[[str], None],
        wake: Callable[[], None],
    ) -> None:
        self._log = log
        self._redact = redact
        self._label = label
        self._show = show
        self._wake = wake
        self._lines: deque[str] = deque(maxlen=_QUEUE_LINES)
        self._thread: threading.Thread | None = None
        self._tail: deque[str] = deque(maxlen=_TAIL_LINES)
        self._noticed = ""

    def start(self, descriptor: int) -> None:
        """Drain `descriptor`, which the pump owns from now on, until its end."""
        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _F_SETPIPE_SZ, PIPE_BYTES)
        self._tail.clear()
        self._thread = threading.Thread(target=self._drain, args=(descriptor,), name="pump", daemon=True)
        self._thread.start()

    def take(self) -> list[str]:
        """The lines since the last call, oldest first; of a flood only the newest."""
        taken = []
        with contextlib.suppress(IndexError):
            while True:
                taken.append(self._lines.popleft())
        return taken

    def evidence(self) -> tuple[str, ...]:
        """The last lines of this life, without secrets."""
        return tuple(self._redact(line) for line in tuple(self._tail))

    def finish(self, timeout_s: float) -> bool:
        """Wait for the end of the output; False when somebody still holds the other end."""
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def say(self, text: str) -> None:
        """A line of our own into the log."""
        line = f"[dflashctl] {self._redact(text)}"
        self._log.write([stamp(line, wall_s=time.time(), phase=self._label(line))])

    def _drain(self, descriptor: int) -> None:
        splitter, limit = LineSplitter(), FlowLimit()
        poller = select.poll()
        poller.register(descriptor, select.POLLIN)
        try:
            while True:
                if not poller.poll(_IDLE_S * 1000):
                    self._notice(splitter.preview())
                    continue
                data = os.read(descriptor, _READ_BYTES)
                if not data:
                    break
                self._pass_on(splitter.feed(data), limit)
        except OSError as error:
            self.say(f"reading the server's output failed: {error}")
        finally:
            os.close(descriptor)
            self._pass_on(splitter.finish(), limit)
            self._write(limit.flush())

    def _pass_on(self, lines: list[Line], limit: FlowLimit) -> None:
        out: list[str] = []
        now = time.monotonic()
        for line in lines:
            admitted = limit.admit(line, now)
            if admitted or line.passing:
                self._lines.append(line.text)
            if not line.passing:
                self._tail.append(line.text)
            out += admitted
        self._write(out)
        if lines:
            self._wake()

    def _notice(self, bar: Line | None) -> None:
        if bar is not None and bar.text != self._noticed:
            self._noticed = bar.text
            self._lines.append(bar.text)
            self._wake()

    def _write(self, lines: list[str]) -> None:
        if not lines:
            return
        clean = [self._redact(line) for line in lines]
        wall_s = time.time()
        self._log.write([stamp(line, wall_s=wall_s, phase=self._label(line)) for line in clean])
        for line in clean:
            self._show(line)
