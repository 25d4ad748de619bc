import json
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dflashctl.core.errors import Unavailable
from dflashctl.edges.web import HttpWeb


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/ok")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/closing":
            self._send_closing(b"bye")
            return
        self._send(200, b"x" * 5000 if self.path == "/big" else self.path.encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/echo":
            self._send(
                200, json.dumps({"got": json.loads(body), "auth": self.headers.get("Authorization")}).encode()
            )
        elif self.path == "/refused":
            self._send(503, b"busy")
        else:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for part in (
                b'data: {"a":1}\n',
                b"\ndata: tw",
                b"o\r\n\r\n: keep-alive\n\ndata: x\ndata: y\n\n",
                b"data: [DONE]\n\n",
            ):
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
                self.wfile.flush()
            if self.path == "/cut":
                self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.wfile.write(b"0\r\n\r\n")

    def _send_closing(self, body):
        """As uvicorn answers a request that said `Connection: close`."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _send(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def base():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@contextmanager
def _silent_listener():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"


def test_body_goes_as_json_with_the_given_headers(base):
    reply = HttpWeb().request("POST", f"{base}/echo", body={"n": 1}, headers={"Authorization": "Bearer k"})
    assert reply.status == 200
    assert json.loads(reply.body) == {"got": {"n": 1}, "auth": "Bearer k"}


def test_query_is_kept(base):
    assert HttpWeb().request("GET", f"{base}/a?b=c").body == b"/a?b=c"


def test_redirects_are_not_followed(base):
    assert HttpWeb().request("GET", f"{base}/moved").status == 302


def test_proxy_variables_are_not_used(base, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert HttpWeb().request("GET", f"{base}/ok").status == 200


def test_refused_connection_is_status_0_with_a_reason():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    reply = HttpWeb().request("GET", f"http://127.0.0.1:{port}/")
    assert reply.status == 0
    assert "refused" in reply.problem


def test_no_answer_ends_at_the_limit():
    with _silent_listener() as url:
        reply = HttpWeb().request("GET", url, timeout_s=0.1)
    assert (reply.status, reply.problem) == (0, "timed out")


def test_oversized_reply_is_a_problem(base):
    reply = HttpWeb(max_bytes=1000).request("GET", f"{base}/big")
    assert (reply.status, reply.problem) == (0, "reply larger than 1000 bytes")


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1/", "http:///x", "http://user:pw@127.0.0.1/", "http://127.0.0.1:99999/"]
)
def test_other_addresses_are_problems(url):
    reply = HttpWeb().request("GET", url)
    assert reply.status == 0
    assert reply.problem


def test_stream_yields_each_event_with_rising_times(base):
    events = list(HttpWeb().stream(f"{base}/stream", body={}))
    assert [e.data for e in events] == ['{"a":1}', "two", "x\ny", "[DONE]"]
    times = [e.at_s for e in events]
    assert times == sorted(times)
    assert times[0] > 0


def test_stream_refusal_carries_the_servers_words(base):
    with pytest.raises(Unavailable) as caught:
        list(HttpWeb().stream(f"{base}/refused", body={}))
    assert "503" in caught.value.message
    assert caught.value.detail == "busy"


def test_cut_stream_raises_after_its_events(base):
    stream = HttpWeb().stream(f"{base}/cut", body={})
    assert [next(stream).data for _ in range(4)] == ['{"a":1}', "two", "x\ny", "[DONE]"]
    with pytest.raises(Unavailable):
        next(stream)


def test_a_server_that_says_it_closes_is_read_whole(base):
    """Since Python 3.12.2 such a response closes its socket with its last byte."""
    reply = HttpWeb().request("GET", f"{base}/closing")
    assert (reply.status, reply.body) == (200, b"bye")
