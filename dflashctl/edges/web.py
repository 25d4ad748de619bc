"""HttpWeb: small HTTP requests by http.client, straight to the host: no proxy, no redirect, bounded."""

from __future__ import annotations

import http.client
import json
import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dflashctl.core.errors import Unavailable
from dflashctl.ports.web import Reply, StreamEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CHUNK_BYTES = 64 * 1024
_OK = 200


class HttpWeb:
    """`max_bytes` bounds one reply or one line of a stream; time limits cover the whole call.

    A proxy is never used: it would see the requests meant for this host and its key.
    """

    def __init__(self, *, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes

    def request(
        self,
        method: str,
        url: str,
        *,
        body: object | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
    ) -> Reply:
        call = _Call(timeout_s)
        try:
            response = call.open(method, url, body, headers)
            return Reply(status=response.status, body=self._read(call), elapsed_s=call.elapsed_s())
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Reply(status=0, problem=_reason(error), elapsed_s=call.elapsed_s())
        finally:
            call.close()

    def stream(
        self,
        url: str,
        *,
        body: object,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> Iterator[StreamEvent]:
        """Every `data:` payload as it is, the closing "[DONE]" of the OpenAI API among them."""
        call = _Call(timeout_s)
        try:
            response = call.open("POST", url, body, headers)
            if response.status != _OK:
                detail = self._read(call)[:2000].decode("utf-8", "replace")
                raise Unavailable(f"{url} answered {response.status} instead of a stream", detail=detail)
            yield from self._events(call)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(f"the stream from {url} broke: {_reason(error)}") from error
        finally:
            call.close()

    def _read(self, call: _Call) -> bytes:
        parts, size = [], 0
        while part := call.read():
            size += len(part)
            if size > self._max_bytes:
                raise ValueError(f"reply larger than {self._max_bytes} bytes")
            parts.append(part)
        return b"".join(parts)

    def _events(self, call: _Call) -> Iterator[StreamEvent]:
        pending, data = b"", []
        while part := call.read():
            at_s = call.since_sent_s()
            *lines, pending = (pending + part).split(b"\n")
            if len(pending) > self._max_bytes:
                raise ValueError(f"line larger than {self._max_bytes} bytes")
            for raw in lines:
                line = raw.rstrip(b"\r")
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" ").decode("utf-8", "replace"))
                elif not line and data:
                    yield StreamEvent(data="\n".join(data), at_s=at_s)
                    data = []
        if data:
            yield StreamEvent(data="\n".join(data), at_s=call.since_sent_s())


class _Call:
    """One exchange with its deadline."""

    def __init__(self, timeout_s: float) -> None:
        self._started = time.monotonic()
        self._sent = self._started
        self._deadline = self._started + timeout_s
        self._connection: http.client.HTTPConnection | None = None
        self._response: http.client.HTTPResponse | None = None
        self._socket: socket.socket | None = None

    def open(
        self, method: str, url: str, body: object | None, headers: Mapping[str, str] | None
    ) -> http.client.HTTPResponse:
        connection, path = _connection(url, self._left_s())
        self._connection = connection
        connection.connect()
        self._socket = connection.sock
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sent = {"Connection": "close", "Accept-Encoding": "identity", **(headers or {})}
        payload = None
        if body is not None:
            payload = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        self._sent = time.monotonic()
        connection.request(method, path, payload, sent)
        self._socket.settimeout(self._left_s())
        self._response = connection.getresponse()
        return self._response

    def read(self) -> bytes:
        # Since Python 3.12.2 a response closes itself and its socket with the last byte that its length announced.
        if self._response is None or self._socket is None or self._response.isclosed():
            return b""
        self._socket.settimeout(self._left_s())
        return self._response.read1(_CHUNK_BYTES)

    def elapsed_s(self) -> float:
        return time.monotonic() - self._started

    def since_sent_s(self) -> float:
        return time.monotonic() - self._sent

    def close(self) -> None:
        if self._response is not None:
            self._response.close()
        if self._connection is not None:
            self._connection.close()

    def _left_s(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        return left


def _connection(url: str, timeout_s: float) -> tuple[http.client.HTTPConnection, str]:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"not an http address: {url!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("an address must not carry a password")
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return kind(parts.hostname, parts.port, timeout=timeout_s), path


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
