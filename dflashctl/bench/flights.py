"""The life of requests on their connections: sent when due, landed, broken, tried again, given up."""

from __future__ import annotations

from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from dflashctl.bench.answer import Answer
from dflashctl.bench.backlog import Backlog
from dflashctl.bench.dock import Dock
from dflashctl.bench.flight import Flight, Link
from dflashctl.bench.poller import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.bench.plan import Plan, Target
    from dflashctl.bench.poller import Poller
    from dflashctl.bench.pulse import Pulse

_SEND_BATCH = 8


class Flights:
    """`flying` are sent and not ended; `plan` says what goes next; `restless` that more is due at once."""

    def __init__(self, target: Target, poller: Poller, pulse: Pulse, done: Callable[[Flight], None]) -> None:
        """`done` gets each ended flight once it is parsed."""
        self._target = target
        self._poller = poller
        self._pulse = pulse
        self.dock = Dock(target, poller, pulse, self._not_connected)
        self.backlog = Backlog(done, self.over)
        self.flying: set[Flight] = set()
        self.again: deque[tuple[int, float]] = deque()
        self.plan: Plan | None = None
        self.restless = True
        self._retried: set[int] = set()

    @property
    def left(self) -> bool:
        """Whether requests are still to be sent."""
        return bool(self.again) or (self.plan is not None and self.plan.left)

    def send_due(self, now: float) -> bool:
        """Send what is due, a few at a time so that answers are not left waiting; True when more is due."""
        plan, dock = self.plan, self.dock
        if plan is None:
            return False
        for _ in range(_SEND_BATCH):
            if not (self.again or plan.due(now, len(self.flying))):
                return False
            if not dock.idle:
                if dock.opening < plan.wanted(now, len(self.flying)) + len(self.again):
                    dock.open()
                return False
            self._send(dock.idle.pop(), *(self.again.popleft() if self.again else plan.take(now)))
        return True

    def _flight(self, index: int, intended: float) -> Flight:
        target = self._target
        answer = Answer(
            api=target.api(index),
            chunk_usage=target.chunk_usage,
            keep_text=target.keep_text,
            text_end=target.text_end,
        )
        return Flight(index, intended, answer)

    def _send(self, link: Link, index: int, intended: float) -> None:
        data = self._target.request_bytes(index)
        flight = self._flight(index, intended)
        flight.link, link.flight = link, flight
        flight.connect_s = None if link.uses else link.connect_s
        link.uses += 1
        self.flying.add(flight)
        plan = self.plan
        now = monotonic()
        flight.sent_s = flight.heard_s = now
        if plan is None or plan.closed_loop:
            flight.intended_s = now
        self._pulse.sent(flight.intended_s, now, free=plan is not None and not plan.held(index))
        try:
            if not link.send(data):
                self._poller.change(link.fd, READ | WRITE)
        except OSError as problem:
            self.broken(link, monotonic(), "reset", str(problem))

    def write(self, link: Link) -> None:
        """Go on with a request that did not fit into the socket's buffer."""
        try:
            if link.out is None or link.send(link.out):
                self._poller.change(link.fd, READ)
        except OSError as problem:
            self.broken(link, monotonic(), "reset", str(problem))

    def _not_connected(self, problem: OSError) -> None:
        """One planned request pays for a connection that could not be made, so that a dead server ends the run."""
        plan = self.plan
        if plan is None or not self.left:
            return
        flight = self._flight(*(self.again.popleft() if self.again else plan.take(monotonic())))
        flight.answer.tally.fail("connect", str(problem))
        self._finish(flight, monotonic())

    def landed(self, link: Link, flight: Flight, now: float) -> None:
        """The answer's last byte is here: the connection is free for the next request."""
        if flight.end_s is not None:
            return
        link.flight, link.plain = None, False
        self._finish(flight, now)
        if flight.answer.closes:
            self.dock.drop(link)
            self._replace()
            return
        self.dock.idle.append(link)
        if self.again or (self.plan is not None and self.plan.waiting):
            self.send_due(now)

    def _replace(self) -> None:
        """Open a connection in place of one that is gone, while requests are left."""
        self.restless = True
        if self.left:
            self.dock.open()

    def _finish(self, flight: Flight, now: float) -> None:
        flight.end_s = now
        self.flying.discard(flight)
        self.backlog.end(flight, now)

    def broken(self, link: Link, now: float, kind: str, detail: str) -> None:
        flight = link.flight
        reused = link.uses > 1
        self.dock.drop(link)
        if flight is not None and flight.end_s is None:
            flight.closed = True
            silent = not flight.begun and not flight.head_bytes and kind != "protocol"
            if silent and reused and flight.index not in self._retried:
                self._retry(flight)
            else:
                if kind != "closed" or not flight.begun:
                    flight.answer.tally.fail(kind, detail)
                self._finish(flight, now)
        self._replace()

    def _retry(self, flight: Flight) -> None:
        """A kept-alive connection that the server had closed already: send once more on a fresh one."""
        self.flying.discard(flight)
        self._retried.add(flight.index)
        self._pulse.reconnects += 1
        self.again.append((flight.index, flight.intended_s))

    def over(self, flight: Flight, at: float) -> None:
        """Parsing found the end that the hint missed (trailers), or bytes that are no valid answer."""
        link, error = flight.link, flight.answer.tally.error
        if link is None or link.flight is not flight or (error is not None and error[0] != "protocol"):
            return  # after an error event the body goes on to its end
        if error is not None:
            self.broken(link, at, *error)
        else:
            self.landed(link, flight, at)

    def abort(self, kind: str, detail: str) -> None:
        """End everything in flight with an error."""
        for flight in tuple(self.flying):
            self.give_up(flight, monotonic(), kind, detail)
        self.backlog.settle()

    def give_up(self, flight: Flight, now: float, kind: str, detail: str) -> None:
        flight.answer.tally.fail(kind, detail)
        link = flight.link
        if link is not None and link.flight is flight:
            self.dock.drop(link)
        self._finish(flight, now)
        self._replace()

    def expire(self, now: float) -> None:
        """End what ran out of time."""
        target = self._target
        for flight in tuple(self.flying):
            if flight.begun and now - flight.heard_s > target.stall_s:
                self.give_up(flight, now, "stall", f"no byte for {target.stall_s:g} s")
            elif now - (flight.sent_s or flight.intended_s) > target.timeout_s:
                self.give_up(flight, now, "timeout", f"not done within {target.timeout_s:g} s")
        self.dock.expire(now)
