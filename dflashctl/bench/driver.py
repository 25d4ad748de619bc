"""The load generator's loop: one thread, non-blocking sockets, nothing but (time, bytes) kept while chunks arrive.

Why not asyncio: a transport, a handle and a context run for every chunk cost more than the read itself.
One clock read goes with each socket read, before it. Stored bytes are parsed when no socket waits, for at most
0.2 ms at a time, or when the backlog passes its limit.
"""

from __future__ import annotations

import ssl
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING

from dflashctl.bench.answer import Answer, read_head
from dflashctl.bench.dechunk import FramingError
from dflashctl.bench.flight import Flight, Link
from dflashctl.bench.poller import READ, WRITE, make_poller
from dflashctl.bench.pulse import Pulse

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.bench.plan import Plan, Target

_BUFFER_BYTES = 65536  # larger reads would make every kept copy a memory mapping of its own
_SLICE_S = 0.0002
_FEW = 8
_BACKLOG_BYTES = 8 << 20
_WATCH_S = 0.25
_SEND_BATCH = 8
_CONNECTING = 64


class Driver:
    """Runs plans against one target; `done` gets each finished Flight once it is parsed."""

    def __init__(self, target: Target, done: Callable[[Flight], None], beat: Callable[[float], None]) -> None:
        self._target = target
        self._done = done
        self._beat = beat
        self.pulse = Pulse()
        self._poller = make_poller()
        self._links: dict[int, Link] = {}
        self._idle: list[Link] = []
        self._opening = 0
        self._buffer = bytearray(_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._pending: deque[tuple[Flight, float, bytes | None]] = deque()
        self._backlog = 0
        self.backlog_max = 0
        self.parsed_busy = 0
        self.flying: set[Flight] = set()
        self._retried: set[int] = set()
        self._again: deque[tuple[int, float]] = deque()
        self._plan: Plan | None = None
        self._stop_at = float("inf")
        self._next_watch = 0.0
        self.stopped = False
        self.control_fd: int | None = None

    # -- connections ------------------------------------------------------------------------------------------

    def connect(self, count: int) -> None:
        """Open `count` connections, 64 at a time; returns when each is open or has failed."""
        wanted = count
        while (wanted > 0 or self._opening) and not self.stopped:
            while wanted > 0 and self._opening < _CONNECTING:
                wanted -= 1
                self._open()
            self._handle(self._poller.wait(0.05))
            self._expire(monotonic())

    def _open(self) -> bool:
        target = self._target
        try:
            link = Link(target.family, target.address, target.tls, target.host)
        except OSError as problem:
            self._not_connected(problem)
            return False
        self._links[link.fd] = link
        self._opening += 1
        self._poller.add(link.fd, WRITE)
        return True

    def _advance(self, link: Link) -> None:
        try:
            state = link.advance()
        except OSError as problem:
            self._drop(link)
            self._not_connected(problem)
            return
        if state is None:
            self._poller.change(link.fd, WRITE)
        else:
            self._poller.change(link.fd, READ)
        if state:
            self._opening -= 1
            self.pulse.connect_s.append(link.connect_s or 0.0)
            self._idle.append(link)

    def _not_connected(self, problem: OSError) -> None:
        """One planned request pays for a connection that could not be made, so that a dead server ends the run."""
        if self._plan is None:
            return
        planned = self._take(monotonic())
        if planned is not None:
            flight = self._flight(*planned)
            flight.answer.tally.fail("connect", str(problem))
            self._finish(flight, monotonic())

    def _drop(self, link: Link) -> None:
        self._poller.remove(link.fd)
        del self._links[link.fd]
        if not link.ready:
            self._opening -= 1
        elif link in self._idle:
            self._idle.remove(link)
        link.close()

    # -- the loop ---------------------------------------------------------------------------------------------

    def run(self, plan: Plan, *, stop_at: float = float("inf")) -> None:
        """Send everything in `plan` until all answers are there and parsed, or stopped."""
        self._plan = plan
        self._stop_at = stop_at
        pending, poller, pulse = self._pending, self._poller, self.pulse
        while not self.stopped and (self.flying or pending or self._again or plan.left):
            now = monotonic()
            if now >= pulse.next_tick_s:
                pulse.tick(now)
                self._watch(now)
            if plan.left or self._again:
                self._send_due(now)
            if pending:
                events = self._parse_when_quiet()
            else:
                events = poller.wait(min(pulse.next_tick_s, plan.next_s) - monotonic())
            if events:
                self._handle(events)
        self._plan = None
        self._settle()

    def _parse_when_quiet(self) -> list[tuple[int, int]]:
        """Parse a slice if no socket waits (few stored reads are done at once); the events that wait otherwise."""
        pending = self._pending
        if len(pending) > _FEW:
            events = self._poller.ready_now()
            if events:
                if self._backlog > _BACKLOG_BYTES:
                    self.parsed_busy += self._parse(10 * _SLICE_S)
                return events
        self._parse(_SLICE_S)
        return self._poller.ready_now() if pending else []

    def _handle(self, events: list[tuple[int, int]]) -> None:
        links = self._links
        for fd, mask in events:
            link = links.get(fd)
            if link is None:
                if fd == self.control_fd:
                    self.stopped = True
            elif not link.ready:
                self._advance(link)
            else:
                if mask & WRITE and link.out is not None:
                    self._write(link)
                if mask & ~WRITE and link.fd in links:
                    self._read(link)

    def _read(self, link: Link) -> None:
        now = monotonic()
        try:
            size = link.recv_into(self._buffer)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError as problem:
            self._broken(link, now, "reset", str(problem))
            return
        flight = link.flight
        if not size:
            self._broken(link, now, "closed", "the server closed the connection")
            return
        if flight is None:  # bytes that nobody asked for: out of step
            self._drop(link)
            return
        data = bytes(self._view[:size])
        flight.heard_s = now
        if not flight.begun:
            self._begin(link, flight, now, data)
        else:
            self._body(link, flight, now, data)
        if link.tls and link.flight is flight and link.sock.pending():  # type: ignore[attr-defined]
            self._read(link)

    def _body(self, link: Link, flight: Flight, now: float, data: bytes) -> None:
        """Keep the bytes; see only whether they are the last."""
        self._pending.append((flight, now, data))
        self._backlog += len(data)
        if flight.chunked:
            if flight.ends_with(data):
                self._landed(link, flight, now)
        elif flight.body_left is not None:
            flight.body_left -= len(data)
            if flight.body_left <= 0:
                self._landed(link, flight, now)

    def _begin(self, link: Link, flight: Flight, now: float, data: bytes) -> None:
        """The head, read at once since it says how the body ends."""
        data = flight.head_bytes + data
        try:
            head = read_head(data)
        except FramingError as problem:
            self._broken(link, now, "protocol", str(problem))
            return
        if head is None:
            flight.head_bytes = data
            return
        if head.status // 100 == 1:  # interim: the real head follows
            flight.head_bytes = b""
            if data[head.size :]:
                self._begin(link, flight, now, data[head.size :])
            return
        flight.begun, flight.head_bytes = True, b""
        flight.answer.begin(head)
        flight.chunked = head.chunked
        flight.body_left = None if head.chunked else head.length
        rest = data[head.size :]
        if rest or flight.body_left == 0:
            self._body(link, flight, now, rest)

    # -- the ends of requests ---------------------------------------------------------------------------------

    def _landed(self, link: Link, flight: Flight, now: float) -> None:
        """The answer's last byte is here: the connection is free for the next request."""
        if flight.end_s is not None:
            return
        link.flight = None
        self._finish(flight, now)
        head = flight.answer.head
        if head is not None and head.close:
            self._drop(link)
            self._replace()
            return
        self._idle.append(link)
        plan = self._plan
        if plan is not None and (self._again or plan.waiting):
            self._send_due(now)

    def _replace(self) -> None:
        """Open a connection in place of one that is gone, while requests are left."""
        if self._plan is not None and (self._plan.left or self._again):
            self._open()

    def _finish(self, flight: Flight, now: float) -> None:
        flight.end_s = now
        self.flying.discard(flight)
        self._pending.append((flight, now, None))

    def _broken(self, link: Link, now: float, kind: str, detail: str) -> None:
        flight = link.flight
        reused = link.uses > 1
        self._drop(link)
        if flight is not None and flight.end_s is None:
            flight.closed = True
            silent = not flight.begun and not flight.head_bytes
            if silent and reused and kind != "protocol" and flight.index not in self._retried:
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
        self.pulse.reconnects += 1
        self._again.append((flight.index, flight.intended_s))

    def abort(self, kind: str, detail: str) -> None:
        """End everything in flight with an error."""
        for flight in tuple(self.flying):
            self._give_up(flight, monotonic(), kind, detail)
        self._settle()

    def _give_up(self, flight: Flight, now: float, kind: str, detail: str) -> None:
        flight.answer.tally.fail(kind, detail)
        link = flight.link
        if link is not None and link.flight is flight:
            self._drop(link)
        self._finish(flight, now)
        self._replace()

    def _watch(self, now: float) -> None:
        """Four times a second: progress, and requests that ran out of time."""
        if now < self._next_watch:
            return
        self._next_watch = now + _WATCH_S
        self._beat(now)
        target = self._target
        for flight in tuple(self.flying):
            if now - flight.heard_s > target.stall_s:
                self._give_up(flight, now, "stall", f"no byte for {target.stall_s:g} s")
            elif now - (flight.sent_s or flight.intended_s) > target.timeout_s:
                self._give_up(flight, now, "timeout", f"not done within {target.timeout_s:g} s")
        self._expire(now)
        if now >= self._stop_at and self._plan is not None:
            self._plan.cut()

    def _expire(self, now: float) -> None:
        """Connections that do not come about."""
        late = [k for k in self._links.values() if not k.ready and now - k.opened_s > self._target.connect_timeout_s]
        for link in late:
            self._drop(link)
            self._not_connected(TimeoutError(f"no connection within {self._target.connect_timeout_s:g} s"))

    # -- sending ----------------------------------------------------------------------------------------------

    def _take(self, now: float) -> tuple[int, float] | None:
        if self._again:
            return self._again.popleft()
        return self._plan.take(now) if self._plan is not None else None

    def _send_due(self, now: float) -> None:
        """Send what is due, a few at a time so that answers are not left waiting; open connections as needed."""
        plan = self._plan
        if plan is None:
            return
        for _ in range(_SEND_BATCH):
            if not (self._again or plan.due(now, len(self.flying))):
                return
            if not self._idle:
                if self._opening < plan.wanted(now, len(self.flying)) + len(self._again):
                    self._open()
                return
            planned = self._take(now)
            if planned is None:
                return
            self._send(self._idle.pop(), *planned)

    def _flight(self, index: int, intended: float) -> Flight:
        target = self._target
        api = target.api(index)
        answer = Answer(api=api, chunk_usage=target.chunk_usage, keep_text=target.keep_text)
        return Flight(index, intended, answer)

    def _send(self, link: Link, index: int, intended: float) -> None:
        data = self._target.request_bytes(index)
        flight = self._flight(index, intended)
        flight.link, link.flight = link, flight
        if not link.uses:
            flight.connect_s = link.connect_s
        link.uses += 1
        self.flying.add(flight)
        plan = self._plan
        now = monotonic()
        flight.sent_s = flight.heard_s = now
        if plan is None or plan.closed_loop:
            flight.intended_s = now
        self.pulse.sent(flight.intended_s, now, free=plan is not None and not plan.held(index))
        try:
            if not link.send(data):
                self._poller.change(link.fd, READ | WRITE)
        except OSError as problem:
            self._broken(link, monotonic(), "reset", str(problem))

    def _write(self, link: Link) -> None:
        """Go on with a request that did not fit into the socket's buffer."""
        try:
            if link.out is None or link.send(link.out):
                self._poller.change(link.fd, READ)
        except OSError as problem:
            self._broken(link, monotonic(), "reset", str(problem))

    # -- parsing ----------------------------------------------------------------------------------------------

    def _parse(self, budget_s: float) -> int:
        """Parse stored reads in the order of arrival for about `budget_s`; how many were done."""
        pending = self._pending
        self.backlog_max = max(self.backlog_max, self._backlog)
        until, count = monotonic() + budget_s, 0
        while pending:
            flight, at, data = pending.popleft()
            count += 1
            if data is None:
                flight.answer.end(at, closed=flight.closed)
                self._done(flight)
            else:
                self._backlog -= len(data)
                flight.answer.feed(at, data)
                if flight.end_s is None and (flight.answer.whole or flight.answer.tally.error is not None):
                    self._over(flight, at)
            if monotonic() >= until:
                break
        return count

    def _over(self, flight: Flight, at: float) -> None:
        """Parsing found the end that the hint missed (trailers), or bytes that are no valid answer."""
        link = flight.link
        error = flight.answer.tally.error
        if error is not None and error[0] != "protocol":
            return  # an error event: the body goes on to its end
        if link is None or link.flight is not flight:
            return
        if error is not None:
            self._broken(link, at, *error)
        else:
            self._landed(link, flight, at)

    def _settle(self) -> None:
        """Parse all that is stored."""
        while self._pending:
            self._parse(1.0)

    def listen(self, fd: int) -> None:
        """A byte or the end on `fd` stops the run."""
        self.control_fd = fd
        self._poller.add(fd, READ)

    def close(self) -> None:
        for link in tuple(self._links.values()):
            self._drop(link)
        self._poller.close()

