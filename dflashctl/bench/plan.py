"""The worker's side of a LoadSpec: which request goes next, when, and to where."""

from __future__ import annotations

import contextlib
import os
import socket
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from dflashctl.bench.flight import Link

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

Place = tuple[int, tuple[object, ...]]


class Target:
    """The server and the bytes that go to it; built from the parent's configuration."""

    def __init__(self, config: dict[str, object], requests: list[list[int]]) -> None:
        """`requests`: [api index, offset, size] by request index; raises OSError when the name is unknown."""
        self.host = str(config["host"])
        port = int(str(config["port"]))
        self.connect_timeout_s = float(str(config["connect_timeout_s"]))
        found = socket.getaddrinfo(self.host, port, type=socket.SOCK_STREAM)
        places = list(dict.fromkeys((family, address) for family, *_, address in found))
        self.family, self.address = reachable(places, self.connect_timeout_s)
        self._context = _tls_context(config) if config["tls"] else None
        stall = config["stall_s"]
        self.stall_s = float(str(stall)) if stall is not None else float("inf")
        self.timeout_s = float(str(config["timeout_s"]))
        self.chunk_usage = bool(config["chunk_usage"])
        self.keep_text = bool(config["keep_text"])
        end = config["text_end"]
        self.text_end = int(str(end)) if end is not None else None
        self._apis = ("chat", "generate")
        heads = config["heads"]
        self._heads = [str(head).encode("latin-1") for head in heads] if isinstance(heads, list) else []
        self._bodies = int(str(config["bodies_fd"]))
        self._requests = requests

    def link(self) -> Link:
        """A new connection under way; raises OSError."""
        if self._context is None:
            return Link(self.family, self.address)
        from dflashctl.bench.tls import TlsLink

        return TlsLink(self.family, self.address, self._context, self.host)

    def api(self, index: int) -> str:
        return self._apis[self._requests[index][0]]

    def request_bytes(self, index: int) -> bytes:
        """Head and body; the body comes from a file, so that long prompts do not fill this process."""
        api, offset, size = self._requests[index]
        return b"%b%d\r\n\r\n%b" % (self._heads[api], size, os.pread(self._bodies, size, offset))


def reachable(places: Sequence[Place], limit_s: float) -> Place:
    """The first (family, address) at which something listens, each tried for `limit_s`; the first one if none.

    "localhost" is often ::1 before 127.0.0.1, whichever of them the server is bound to. A single place is not tried.
    """
    for family, address in places if len(places) > 1 else ():
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as attempt:
            attempt.settimeout(limit_s)
            attempt.connect(address)
            return family, address
    return places[0]


def _tls_context(config: dict[str, object]) -> ssl.SSLContext:
    from dflashctl.bench.tls import make_context

    return make_context(str(config["ca_file"] or ""), verify=bool(config["verify_tls"]))


class Plan:
    """Requests in order. Closed loop: whenever fewer than `limit` fly. Open loop: each at its time."""

    def __init__(self, indices: list[int], *, limit: int | None, times: list[float] | None = None) -> None:
        """`times` are absolute; None for a closed loop, which then needs a limit."""
        self._queue = deque(indices)
        self._times = deque(times) if times is not None else None
        self._limit = limit
        self._held: set[int] = set()
        self._blocked = False
        self.closed_loop = times is None

    @property
    def left(self) -> bool:
        return bool(self._queue)

    @property
    def waiting(self) -> bool:
        """Whether a request goes as soon as another one ends."""
        return bool(self._queue) and self._limit is not None

    @property
    def next_s(self) -> float:
        """When the next planned request is due; far away where the end of another one triggers it."""
        return self._times[0] if self._times and not self._blocked else float("inf")

    def due(self, now: float, flying: int) -> bool:
        """Whether one must be sent now; one that only the limit holds back is marked as held."""
        if not self._queue or (self._times is not None and self._times[0] > now):
            return False
        self._blocked = self._limit is not None and flying >= self._limit
        if self._blocked:
            self._held.add(self._queue[0])
        return not self._blocked

    def wanted(self, now: float, flying: int) -> int:
        """How many more connections could be used at once."""
        most = (
            len(self._queue) if self._limit is None else min(len(self._queue), max(0, self._limit - flying))
        )
        if self._times is None:
            return most
        return sum(1 for at in islice(self._times, most) if at <= now)

    def take(self, now: float) -> tuple[int, float]:
        """The next request's index and planned time; only while some are left."""
        at = self._times.popleft() if self._times is not None else now
        return self._queue.popleft(), at

    def held(self, index: int) -> bool:
        """Whether the concurrency limit, not this process, delayed the request."""
        return index in self._held

    def cut(self) -> None:
        """Send nothing more."""
        self._queue.clear()
        if self._times is not None:
            self._times.clear()
