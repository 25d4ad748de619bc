"""One request on its way, and one connection to the server."""

from __future__ import annotations

import os
import socket
import ssl
from time import monotonic

from dflashctl.bench.answer import Answer

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

    def ends_with(self, data: bytes) -> bool:
        """Whether the body so far plus `data` ends like the last chunk; JSON events hold no raw CR LF.

        Only a hint, so that the next request need not wait for the parsing: the framing, read later, decides.
        """
        if len(data) >= len(CHUNKED_END):
            self.previous = data
            return data.endswith(CHUNKED_END)
        self.previous = (self.previous + data)[-len(CHUNKED_END) :]
        return self.previous == CHUNKED_END


class Link:
    """A connection that opens without blocking: connect, then TLS if wanted, then `ready`."""

    __slots__ = (
        "_context", "_host", "connect_s", "fd", "flight", "opened_s", "out", "ready", "recv_into", "sock", "tls",
        "uses",
    )  # fmt: skip

    def __init__(self, family: int, address: tuple[object, ...], tls: ssl.SSLContext | None, host: str) -> None:
        """Starts the connection; raises OSError when it fails at once."""
        self.opened_s = monotonic()
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            sock.connect(address)
        except BlockingIOError:
            pass
        except OSError:
            sock.close()
            raise
        self._context = tls
        self._host = host
        self.tls = tls is not None
        self.sock: socket.socket = sock
        self.fd = sock.fileno()
        self.recv_into = sock.recv_into
        self.flight: Flight | None = None
        self.out: memoryview | None = None
        self.ready = False
        self.connect_s: float | None = None
        self.uses = 0

    def advance(self) -> bool | None:
        """Go on opening: True when ready, None when it wants to write again, False when it waits to read.

        Raises OSError when the connection cannot be made.
        """
        failure = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failure:
            raise OSError(failure, os.strerror(failure))
        if self._context is not None and not isinstance(self.sock, ssl.SSLSocket):
            self.sock = self._context.wrap_socket(
                self.sock, server_hostname=self._host, do_handshake_on_connect=False
            )
            self.recv_into = self.sock.recv_into
        if isinstance(self.sock, ssl.SSLSocket):
            try:
                self.sock.do_handshake()
            except ssl.SSLWantReadError:
                return False
            except ssl.SSLWantWriteError:
                return None
        self.ready = True
        self.connect_s = monotonic() - self.opened_s
        return True

    def send(self, data: bytes | memoryview) -> bool:
        """Write what fits; True when all is written. Raises OSError."""
        view = memoryview(data)
        while view:
            try:
                written = self.sock.send(view)
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                self.out = view
                return False
            view = view[written:]
        self.out = None
        return True

    def close(self) -> None:
        self.sock.close()
