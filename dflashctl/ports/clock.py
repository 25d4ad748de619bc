"""Clock: the only source of time."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """`monotonic` for durations and limits, `wall` (seconds since 1970) for display only."""

    def monotonic(self) -> float: ...

    def wall(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...
