"""The load generator's loop: one thread, non-blocking sockets, nothing but (time, bytes) kept while chunks arrive.

Why not asyncio: a transport, a handle and a context run for every chunk cost more than the read itself.
One clock read goes with each socket read, before it. What is stored is parsed when no socket waits, for at most
0.2 ms at a time, or when the backlog passes its limit.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from dflashctl.bench.answer import read_head
from dflashctl.bench.backlog import LIMIT_BYTES, SLICE_S, SMALL
from dflashctl.bench.dechunk import FramingError
from dflashctl.bench.flight import CHUNKED_END
from dflashctl.bench.flights import Flights
from dflashctl.bench.poller import READ, WRITE, make_poller
from dflashctl.bench.pulse import Pulse

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.bench.flight import Flight, Link
    from dflashctl.bench.plan import Plan, Target

_BUFFER_BYTES = 65536  # larger reads would make every kept copy a memory mapping of its own
_FEW = 8
_WATCH_S = 0.25
_CONNECTING = 64


class Driver:
    """Runs plans against one target; `done` gets each finished Flight once it is parsed, `beat` the clock."""

    def __init__(self, target: Target, done: Callable[[Flight], None], beat: Callable[[float], None]) -> None:
        self._beat = beat
        self.pulse = Pulse()
        self._poller = make_poller()
        self._flights = Flights(target, self._poller, self.pulse, done)
        self.flying = self._flights.flying
        self.backlog = self._flights.backlog
        self._links = self._flights.dock.links
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._stop_at = float("inf")
        self._next_watch = 0.0
        self._wake_s = 0.0  # when the loop must look at more than its sockets
        self.stopped = False
        self._control: int | None = None

    def connect(self, count: int) -> None:
        """Open `count` connections, 64 at a time; returns when each is open or has failed."""
        dock, wanted = self._flights.dock, count
        while (wanted > 0 or dock.opening) and not self.stopped:
            while wanted > 0 and dock.opening < _CONNECTING:
                wanted -= 1
                dock.open()
            self._serve(self._poller.poll(0.05))
            dock.expire(monotonic())

    def run(self, plan: Plan, *, stop_at: float = float("inf")) -> None:
        """Send everything in `plan` until all answers are there and parsed, or stopped."""
        flights, backlog, items = self._flights, self.backlog, self.backlog.items
        flights.plan, flights.restless, self._stop_at, self._wake_s = plan, True, stop_at, 0.0
        poll, flying = self._poller.poll, self.flying
        while not self.stopped and (flying or items or flights.left):
            now = monotonic()
            if now >= self._wake_s or flights.restless:
                self._look_around(now)
            wait = self._wake_s - now
            if items:
                wait = 0.0
                if len(items) <= _FEW:  # a few microseconds: not worth a look at the sockets first
                    backlog.parse(SLICE_S)
                    wait = 0.0 if items else self._wake_s - monotonic()
            events = poll(0.0 if flights.restless else wait)
            if events:
                self._serve(events)
                if backlog.size > LIMIT_BYTES:
                    backlog.shrink()
            elif items:
                backlog.parse(SLICE_S)
        flights.plan = None
        backlog.settle()

    def _look_around(self, now: float) -> None:
        """What is due by the clock: ticks, sends, the watch."""
        flights, pulse = self._flights, self.pulse
        if now >= pulse.next_tick_s:
            pulse.tick(now)
            self._watch(now)
        flights.restless = flights.send_due(now)
        self._wake_s = min(pulse.next_tick_s, flights.plan.next_s if flights.plan is not None else now)

    def _serve(self, events: list[tuple[int, int]]) -> None:
        """Read what came; the common case, one more piece of a chunked body, is written out here."""
        links, backlog, view, items = self._links, self.backlog, self._view, self.backlog.items
        few = len(events) <= _FEW
        for fd, mask in events:
            link = links.get(fd)
            if link is None or not link.plain or mask != READ:
                self._serve_other(fd, link, mask)
                continue
            now = monotonic()
            try:
                size = link.recv_into(self._buffer)
            except OSError as problem:
                self._unread(link, now, problem)
                continue
            flight = link.flight
            if flight is None or size <= len(CHUNKED_END):
                self._received(link, now, size)
                continue
            data = view[:size].tobytes()
            flight.heard_s = now
            flight.previous = data
            if few and size < SMALL and not items:  # parsed sooner than stored
                if flight.answer.feed(now, data):
                    self._flights.over(flight, now)
            else:
                items.append((flight, now, data))
                backlog.size += size
            if data.endswith(CHUNKED_END):
                self._flights.landed(link, flight, now)

    def _serve_other(self, fd: int, link: Link | None, mask: int) -> None:
        if link is None:
            self.stopped = self.stopped or fd == self._control
        elif not link.ready:
            self._flights.dock.advance(link)
            self._flights.restless = True
        else:
            if mask & WRITE and link.out is not None:
                self._flights.write(link)
            while mask & ~WRITE and self._links.get(fd) is link:
                now = monotonic()
                try:
                    size = link.recv_into(self._buffer)
                except OSError as problem:
                    self._unread(link, now, problem)
                    break
                self._received(link, now, size)
                if not link.buffered():
                    break

    def _unread(self, link: Link, now: float, problem: OSError) -> None:
        if not link.must_wait(problem):
            self._flights.broken(link, now, "reset", str(problem))

    def _received(self, link: Link, now: float, size: int) -> None:
        """Any read: the end of the connection, a head, a piece of a body."""
        flight = link.flight
        if not size:
            self._flights.broken(link, now, "closed", "the server closed the connection")
        elif flight is None:  # bytes that nobody asked for: out of step
            self._flights.dock.drop(link)
        else:
            data = self._view[:size].tobytes()
            flight.heard_s = now
            if flight.begun:
                self._body(link, flight, now, data)
            else:
                self._begin(link, flight, now, data)

    def _body(self, link: Link, flight: Flight, now: float, data: bytes) -> None:
        """Keep the bytes; see only whether they are the last."""
        self.backlog.items.append((flight, now, data))
        self.backlog.size += len(data)
        if flight.took_last(data):
            self._flights.landed(link, flight, now)

    def _begin(self, link: Link, flight: Flight, now: float, data: bytes) -> None:
        """The head, read at once since it says how the body ends."""
        data, flight.head_bytes = flight.head_bytes + data, b""
        try:
            head = read_head(data)
        except FramingError as problem:
            self._flights.broken(link, now, "protocol", str(problem))
            return
        if head is None:
            flight.head_bytes = data
            return
        rest = data[head.size :]
        if head.interim:
            if rest:
                self._begin(link, flight, now, rest)
            return
        flight.begin(head)
        link.plain = head.chunked and not link.tls
        if rest or flight.body_left == 0:
            self._body(link, flight, now, rest)

    def _watch(self, now: float) -> None:
        """Four times a second: progress, and requests that ran out of time."""
        if now < self._next_watch:
            return
        self._next_watch = now + _WATCH_S
        self._beat(now)
        self._flights.expire(now)
        if now >= self._stop_at and self._flights.plan is not None:
            self._flights.plan.cut()

    def abort(self, kind: str, detail: str) -> None:
        """End everything in flight with an error."""
        self._flights.abort(kind, detail)

    def listen(self, fd: int) -> None:
        """A byte or the end on `fd` stops the run."""
        self._control = fd
        self._poller.add(fd, READ)

    def close(self) -> None:
        self._flights.dock.close()
        self._poller.close()
