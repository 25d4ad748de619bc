"""Log reader: the server's lines → events of the lifecycle, and facts worth keeping."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

from dflashctl.core.events import Event, Progressed, TokensSeen
from dflashctl.core.instance import Phase
from dflashctl.core.server_state import furthest
from dflashctl.core.start_phase import StartPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dflashctl.core.engine import LogMark

_STAMP = re.compile(r"^\[[^\]]*\] ")
_BATCHES = ("Decode batch", "Prefill batch")
_REMEMBERED = 256


class LogReader:
    """A line is a sign of progress when it tells of a new step or count, or was not seen before in this life."""

    def __init__(self, read_line: Callable[[str], LogMark | None]) -> None:
        self._read_line = read_line
        self._seen: deque[str] = deque(maxlen=_REMEMBERED)
        self._last: tuple[object, ...] = ()
        self.facts: dict[str, str] = {}

    def events(self, lines: Iterable[str]) -> list[Event]:
        found: list[Event] = []
        moved = batch = False
        for line in lines:
            batch = batch or any(word in line for word in _BATCHES)
            mark = self._read_line(line)
            if mark is None:
                moved = self._is_new(line) or moved
                continue
            self.facts.update(mark.facts)
            place = (mark.phase, mark.done, mark.total)
            if place != self._last:
                self._last = place
                found.append(Progressed(step=mark.phase, done=mark.done, total=mark.total))
        if moved and not found:
            found.append(Progressed())
        return [*found, TokensSeen()] if batch else found

    def _is_new(self, line: str) -> bool:
        text = _STAMP.sub("", line)
        if text in self._seen:
            return False
        self._seen.append(text)
        return True


class LineLabels:
    """What each line is stamped with: the phase, and while loading the step that the line itself may begin.

    Called by the pump's thread; `phase` is set by the loop's.
    """

    def __init__(self, read_line: Callable[[str], LogMark | None]) -> None:
        self._read_line = read_line
        self._step: StartPhase = StartPhase.RESOLVE
        self.phase: Phase = Phase.STARTING

    def begin(self) -> None:
        """A new life."""
        self._step = StartPhase.RESOLVE

    def __call__(self, line: str) -> str:
        if self.phase not in {Phase.STARTING, Phase.LOADING}:
            return str(self.phase.value)
        mark = self._read_line(line)
        if mark is not None:
            self._step = furthest(self._step, mark.phase)
        return f"{Phase.LOADING.value}.{self._step.value}"
