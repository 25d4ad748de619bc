"""Reads that are stored but not parsed yet, in the order of arrival over all connections."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.bench.flight import Flight

SLICE_S = 0.0002  # what parsing may take while sockets could be waiting
LIMIT_BYTES = 8 << 20
SMALL = 1024
_CLOCK_EVERY = 8


class Backlog:
    """`items` holds (flight, arrival, bytes), bytes None after the last; `size` is what they hold in bytes."""

    __slots__ = ("_done", "_over", "items", "parsed_busy", "size", "size_max")

    def __init__(self, done: Callable[[Flight], None], over: Callable[[Flight, float], None]) -> None:
        """`done` gets each parsed flight; `over` one whose end (or error) only the parsing found."""
        self.items: deque[tuple[Flight, float, bytes | None]] = deque()
        self.size = 0
        self.size_max = 0
        self.parsed_busy = 0
        self._done = done
        self._over = over

    def end(self, flight: Flight, at_s: float) -> None:
        """No more bytes come for `flight`."""
        self.items.append((flight, at_s, None))

    def parse(self, budget_s: float) -> int:
        """Parse for about `budget_s`; how many reads were done."""
        items, count = self.items, 0
        self.size_max = max(self.size_max, self.size)
        until = monotonic() + budget_s
        while items:
            flight, at, data = items.popleft()
            count += 1
            answer = flight.answer
            if data is None:
                answer.end(at, closed=flight.closed)
                self._done(flight)
            else:
                size = len(data)
                self.size -= size
                if answer.feed(at, data) and flight.end_s is None:
                    self._over(flight, at)
                if size < SMALL and count % _CLOCK_EVERY:
                    continue
            if monotonic() >= until:
                break
        return count

    def shrink(self) -> None:
        """Bring the size under its limit although sockets wait: memory stays bounded, and the result says so."""
        while self.size > LIMIT_BYTES:
            self.parsed_busy += self.parse(SLICE_S)

    def settle(self) -> None:
        """Parse all of it."""
        while self.items:
            self.parse(1.0)
