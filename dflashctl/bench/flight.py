"""One request on its way, and one connection to the server."""

from __future__ import annotations

import os
import socket
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.bench.answer import Answer, Head

BODY_START = b"\r\n"  # so that an empty chunked body ends like any other
CHUNKED_END = b"\r\n0\r\n\r\n"


class Flight:
    """A request from its planned time to its last byte; `end_s` set means that no more bytes will be added."""

    __slots__ = (
        "answer", "begun", "body_left", "chunked", "closed", "connect_s", "end_s", "head_bytes", "heard_s",
        "index", "intended_s", "link", "previous", "sent_s",
    )  # fmt: skip

    def __init__(self, index: int, intended_s: float, answer: Answer) -> None:
        self.index = index
        self.intended_s = intended_s
        self.sent_s: float | None = None
        self.end_s: float | None = None
        self.heard_s = intended_s
        self.answer = answer
        self.link: Link | None = None
        self.connect_s: float | None = None
        self.head_bytes = b""
        self.begun = False
        self.chunked = False
        self.body_left: int | None = None
        self.previous = BODY_START
        self.closed = False

    def begin(self, head: Head) -> None:
        """The head is here; what follows is the body."""
        self.begun = True
        self.answer.begin(head)
        self.chunked = head.chunked
        self.body_left = None if head.chunked else head.length

    def took_last(self, data: bytes) -> bool:
        """Whether `data` seems to end the body: by the length, or because it looks like the last chunk.

        Only a hint, so that the next request need not wait for the parsing (JSON events hold no raw CR LF);
        the framing, read later, decides.
        """
        if not self.chunked:
            if self.body_left is None:
                return False
            self.body_left -= len(data)
            return self.body_left <= 0
        if len(data) >= len(CHUNKED_END):
            self.previous = data
            return data.endswith(CHUNKED_END)
        self.previous = (self.previous + data)[-len(CHUNKED_END) :]
        return self.previous == CHUNKED_END


class Link:
    """A connection that opens without blocking; `ready` when requests can be sent on it."""

    __slots__ = (
        "connect_s",
        "fd",
        "flight",
        "opened_s",
        "out",
        "plain",
        "ready",
        "recv_into",
        "sock",
        "uses",
    )
    tls = False

    def __init__(self, family: int, address: tuple[object, ...]) -> None:
        """Starts the connection; raises OSError when it fails at once."""
        self.opened_s = monotonic()
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock.connect(address)
        except BlockingIOError:
            pass
        except OSError:
            sock.close()
            raise
        self.sock = sock
        self.fd = sock.fileno()
        self.recv_into = sock.recv_into
        self.flight: Flight | None = None
        self.out: memoryview | None = None
        self.ready = False
        self.plain = False  # a chunked body is under way without TLS: the common case of a read
        self.connect_s: float | None = None
        self.uses = 0

    def advance(self) -> bool:
        """Go on opening, up to `ready`; whether it waits to write. Raises OSError when it cannot be made."""
        failure = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, os.strerror(failure))
        self._opened()
        return False

    def _opened(self) -> None:
        self.ready = True
        self.connect_s = monotonic() - self.opened_s

    def buffered(self) -> bool:
        """Whether bytes are here of which the poller knows nothing."""
        return False

    def must_wait(self, problem: OSError) -> bool:
        """Whether a failed read or write only came too early."""
        return isinstance(problem, BlockingIOError)

    def send(self, data: bytes | memoryview) -> bool:
        """Write what fits; True when all is written. Raises OSError."""
        view = data
        while view:
            try:
                written = self.sock.send(view)
            except OSError as problem:
                if not self.must_wait(problem):
                    raise
                self.out = memoryview(view)
                return False
            if written == len(view):  # nearly always, and at once
                break
            view = memoryview(view)[written:]
        self.out = None
        return True

    def close(self) -> None:
        self.sock.close()
