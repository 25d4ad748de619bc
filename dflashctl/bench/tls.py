"""Connections over TLS; loaded only when the server's URL asks for it."""

from __future__ import annotations

import socket
import ssl

from dflashctl.bench.flight import Link

_LATER = (ssl.SSLWantReadError, ssl.SSLWantWriteError)


class TlsLink(Link):
    """Connect, then shake hands; both count as connect time."""

    __slots__ = ("_context", "_host")
    tls = True

    def __init__(self, family: int, address: tuple[object, ...], context: ssl.SSLContext, host: str) -> None:
        super().__init__(family, address)
        self._context = context
        self._host = host

    def advance(self) -> bool:
        """As Link.advance; certificate faults are OSErrors too."""
        if not isinstance(self.sock, ssl.SSLSocket):
            failure = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure:
                raise OSError(failure, f"connect failed with error {failure}")
            self.sock = self._context.wrap_socket(
                self.sock, server_hostname=self._host, do_handshake_on_connect=False
            )
            self.recv_into = self.sock.recv_into
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLWantWriteError:
            return True
        self._opened()
        return False

    def buffered(self) -> bool:
        return isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0

    def must_wait(self, problem: OSError) -> bool:
        return isinstance(problem, (BlockingIOError, *_LATER))


def make_context(ca_file: str | None, *, verify: bool) -> ssl.SSLContext:
    """The default context; an own CA adds to it, and verification is dropped only on request."""
    context = ssl.create_default_context()
    if ca_file:
        context.load_verify_locations(ca_file)
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
