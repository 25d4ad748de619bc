"""The bare GET against real servers: this library's, the reference engine's."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from dflashctl.edges.glance import glance


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"a b\r\n\r\nc" * 50_000
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextmanager
def served():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_whole_body_comes():
    with served() as port:
        assert glance("127.0.0.1", port, "/metrics", 5) == b"a b\r\n\r\nc" * 50_000


def test_another_status_is_no_answer():
    with served() as port:
        assert glance("127.0.0.1", port, "/nothing", 5) is None


def test_nobody_there_is_no_answer():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        assert glance("127.0.0.1", probe.getsockname()[1], "/metrics", 1) is None


def test_a_server_that_says_nothing_is_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert glance("127.0.0.1", silent.getsockname()[1], "/metrics", 0.1) is None


def test_garbage_is_no_answer():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            connection.recv(1000)
            connection.sendall(b"\0\1garbage")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        assert glance("127.0.0.1", server.getsockname()[1], "/metrics", 2) is None
        thread.join()
