"""The progress line: one line that is rewritten on a terminal, a line per step elsewhere."""

from __future__ import annotations

import shutil
import time
from typing import IO, TYPE_CHECKING

from dflashctl.ui.control import tame

if TYPE_CHECKING:
    from dflashctl.core.progress import Progress

_UNITS = (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
_QUIET_S = 30.0


def bytes_text(count: float) -> str:
    """A number of bytes for people, in powers of 1000."""
    for unit, size in _UNITS:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} B"


def elapsed_text(seconds: float) -> str:
    """A duration for people: 4.2 s, 3:07, 1:02:09."""
    if seconds < 60:  # noqa: PLR2004 - a minute
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def amount_text(event: Progress) -> str:
    if event.done is None:
        return ""
    if event.unit == "bytes":
        whole = f" of {bytes_text(event.total)}" if event.total else ""
        rate = f", {bytes_text(event.rate_per_s)}/s" if event.rate_per_s else ""
        left = f", {elapsed_text(event.left_s)} left" if event.left_s else ""
        return f" {bytes_text(event.done)}{whole}{rate}{left}"
    whole = f"/{event.total:g}" if event.total else ""
    return f" {event.done:g}{whole}"


class ProgressLine:
    """Steps with their elapsed time; when not on a terminal, a line at each new step and every 30 s within one."""

    def __init__(self, err: IO[str]) -> None:
        self._err = err
        self._terminal = err.isatty()
        self._step = ""
        self._text = ""
        self._began = time.monotonic()
        self._said = 0.0
        self._open = False

    def show(self, event: Progress) -> None:
        now = time.monotonic()
        if event.step != self._step:
            self._finish(now)
            self._step, self._began, self._said = event.step, now, 0.0
        before, self._text = self._text, tame(f"{event.text}{amount_text(event)}")
        if event.final:
            if self._text != before or self._open:
                self._write_whole(self._text)
        elif self._terminal:
            self._draw(now)
        elif not self._said or now - self._said > _QUIET_S:
            self._said = now
            self._err.write(self._text + "\n")
        self._err.flush()

    def interrupt(self) -> None:
        """Make room for other output; the line is drawn again with the next event."""
        if self._open:
            self._err.write("\r\x1b[K")
            self._open = False

    def close(self) -> None:
        self._finish(time.monotonic())
        self._err.flush()

    def _draw(self, now: float) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._err.write("\r\x1b[K" + f"{self._text}  ({elapsed_text(now - self._began)})"[:width])
        self._open = True

    def _write_whole(self, text: str) -> None:
        self._err.write(("\r\x1b[K" if self._open else "") + text + "\n")
        self._open = False

    def _finish(self, now: float) -> None:
        """Leave the line of the step that ended, with the time it took."""
        if self._open:
            self._draw(now)
            self._err.write("\n")
            self._open = False
