"""Glance: one page of a server on this host, by a bare socket.

`status` asks for it every few seconds from scripts, and importing http.client (with the email package) would cost more
than all the rest of the command. HTTP/1.0 keeps the answer free of chunks: it ends where the connection does.
"""

from __future__ import annotations

import socket

_MOST = 16 * 1024 * 1024


def glance(host: str, port: int, path: str, timeout_s: float) -> bytes | None:
    """The body of a GET that was answered with 200, None for anything else; `timeout_s` bounds each wait."""
    try:
        with socket.create_connection((host, port), timeout_s) as connection:
            name = f"[{host}]" if ":" in host else host
            connection.sendall(f"GET {path} HTTP/1.0\r\nHost: {name}:{port}\r\n\r\n".encode())
            answer = b""
            while (part := connection.recv(65536)) and len(answer) < _MOST:
                answer += part
    except OSError:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return body if head.split(b" ", 2)[1:2] == [b"200"] else None
