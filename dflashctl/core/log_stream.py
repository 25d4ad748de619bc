"""Log stream: bytes of a server's output → lines, with progress bars folded and floods cut; pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BREAK = re.compile(rb"\r\n|\r|\n")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
_PROGRESS_EVERY_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Line:
    """`passing` lines are states of a progress bar: each is soon replaced by the next."""

    text: str
    passing: bool = False


class LineSplitter:
    """Cuts lines at `max_bytes`; what follows a carriage return replaces what stood before it."""

    def __init__(self, *, max_bytes: int = 16 * 1024) -> None:
        self._max_bytes = max_bytes
        self._rest = b""
        self._cutting = False

    def feed(self, data: bytes) -> list[Line]:
        """The lines completed by `data`; memory never exceeds one line and `data`."""
        lines: list[Line] = []
        start = 0
        data = self._rest + data
        held_return = data.endswith(b"\r")
        end = len(data) - 1 if held_return else len(data)
        for found in _BREAK.finditer(data, 0, end):
            self._add(lines, data[start : found.start()], passing=found[0] == b"\r")
            start = found.end()
        self._rest = data[start:]
        if len(self._rest) > self._max_bytes:
            if not self._cutting:
                self._add(lines, self._rest, passing=False)
            self._cutting, self._rest = True, b""
        return lines

    def finish(self) -> list[Line]:
        """The last, unfinished line."""
        lines: list[Line] = []
        self._add(lines, self._rest.rstrip(b"\r"), passing=False)
        self._rest = b""
        return lines

    def preview(self) -> Line | None:
        """The state of a progress bar that is not replaced yet."""
        return Line(text=_clean(self._rest), passing=True) if self._rest and not self._cutting else None

    def _add(self, lines: list[Line], raw: bytes, *, passing: bool) -> None:
        if self._cutting:
            self._cutting = False
            return
        if not raw.strip():
            return
        cut = f" … [{len(raw)} bytes or more, cut]" if len(raw) > self._max_bytes else ""
        lines.append(Line(text=_clean(raw[: self._max_bytes]) + cut, passing=passing))


class FlowLimit:
    """Which lines are written: at most `per_second`, and one state of a progress bar a second.

    `admit` answers with the lines to write now, a note about suppressed ones among them.
    """

    def __init__(self, *, per_second: int = 2000) -> None:
        self._per_second = per_second
        self._window = 0.0
        self._count = 0
        self._suppressed = 0
        self._bar: str | None = None
        self._bar_at = float("-inf")
        self.suppressed_total = 0

    def admit(self, line: Line, now: float) -> list[str]:
        if line.passing:
            return self._admit_bar(line.text, now)
        out = self._open_window(now)
        if self._bar is not None:
            out.append(self._bar)
            self._bar = None
        if self._count >= self._per_second:
            self._suppressed += 1
            self.suppressed_total += 1
            return out
        self._count += 1
        return [*out, line.text]

    def flush(self) -> list[str]:
        """What is still owed at the end: the last state of a bar, the last note."""
        out = [self._bar] if self._bar is not None else []
        self._bar = None
        return out + self._note()

    def _admit_bar(self, text: str, now: float) -> list[str]:
        if now - self._bar_at < _PROGRESS_EVERY_S:
            self._bar = text
            return []
        self._bar, self._bar_at = None, now
        return [text]

    def _open_window(self, now: float) -> list[str]:
        if now - self._window < 1.0:
            return []
        self._window, self._count = now, 0
        return self._note()

    def _note(self) -> list[str]:
        if not self._suppressed:
            return []
        note = f"[dflashctl: {self._suppressed} lines suppressed]"
        self._suppressed = 0
        return [note]


def _clean(raw: bytes) -> str:
    return _CONTROL.sub("", raw.decode("utf-8", "replace")).rstrip()
