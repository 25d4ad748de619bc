"""Log line: one line of our server.log, when it came and in which phase, in front of what the server wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone

_STAMPED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([a-z_.]+) \| (.*)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """`at` (UTC, ISO 8601) and `phase` are None for a line that is not from our pump.

    `phase` is that of the instance, followed by the step of the start: "loading.capture", "ready".
    """

    text: str
    at: str | None = None
    phase: str | None = None

    def is_of(self, phase: str) -> bool:
        """Whether it came in that phase or step."""
        return self.phase is not None and (self.phase == phase or phase in self.phase.split("."))


def stamp(text: str, *, wall_s: float, phase: str) -> str:
    """The line as the pump writes it, without its line break."""
    at = datetime.fromtimestamp(wall_s, tz=timezone.utc)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z {phase} | {text}"


def parse(line: str) -> LogLine:
    """The inverse of `stamp`; any other line is all text."""
    found = _STAMPED.fullmatch(line)
    if found is None:
        return LogLine(text=line)
    return LogLine(at=found[1], phase=found[2], text=found[3])
