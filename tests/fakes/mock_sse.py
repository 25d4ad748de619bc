"""A mock model server over raw sockets that knows the truth: it logs when it really sent each chunk.

    python -m tests.fakes.mock_sse --port 0 [--ttft-ms 200 --gap-ms 10 --chunks 400]

Chat and /generate, streamed or whole. What a request wants stands in its body under "mock" (see Wish); the
command line gives the defaults, for clients that cannot say. GET /truth returns the log.
"""

from __future__ import annotations

import argparse
import contextlib
import heapq
import json
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass, field, fields, replace
from itertools import count

SPEC_KEYS = (
    "spec_verify_ct",
    "spec_num_correct_drafts",
    "spec_num_proposed_drafts",
    "spec_correct_drafts_histogram",
)


@dataclass
class Wish:
    """How one answer is to be. `tokens[i]` are those of content chunk i; `group` chunks go out in one write."""

    id: str = ""
    ttft_ms: float = 20.0
    gap_ms: float = 5.0
    chunks: int = 8
    tokens: list[int] = field(default_factory=list)
    text: str = "tok "
    reasoning: int = 0  # the first so many chunks are reasoning deltas
    tool_call: bool = False  # the first chunk is a tool call
    group: int = 1
    cut: int = 0  # write in pieces of so many bytes
    line_end: str = "\n"
    keepalive: bool = False
    framing: str = "chunked"  # chunked | close | trailers
    connection: str = "keep-alive"
    status: int = 200
    retry_after: str = ""
    error_at: int = -1
    stall_at: int = -1
    reset_at: int = -1
    close_at: int = -1
    usage: str = "right"  # right | wrong | none
    sglext: bool = True
    finish: str = "stop"
    done_event: bool = True
    cumulative: bool = True
    garbage_at: int = -1
    verify_steps: int = 0
    histogram: list[int] = field(default_factory=list)
    prompt_tokens: int = 31
    cached_tokens: int = 0  # told as SGLang does with --enable-cache-report: only where there are some
    late_finish: bool = False  # the finish reason comes with the last content chunk
    close_silently: bool = False  # close without a byte

    def counts(self) -> list[int]:
        return self.tokens or [1] * self.chunks

    def spec(self) -> dict[str, object]:
        """The engine's counts: one verify step a chunk unless said otherwise."""
        total, steps = sum(self.counts()), self.verify_steps or max(1, len(self.counts()) - 1)
        return {
            "spec_accept_length": total / steps,
            "spec_verify_ct": steps,
            "spec_num_correct_drafts": total - steps,
            "spec_num_proposed_drafts": steps * 7,
            "spec_correct_drafts_histogram": self.histogram,
        }


class Frames:
    """The bytes of a streamed answer: (content chunks in it, bytes) of each write."""

    def __init__(self, wish: Wish, body: dict[str, object], api: str) -> None:
        self.wish, self.body, self.api = wish, body, api
        options = body.get("stream_options") or {}
        self.running = bool(options.get("continuous_usage_stats"))
        self.wants_usage = bool(options.get("include_usage"))
        self.wants_spec = bool(body.get("return_spec_tokens_details"))
        self._cache: dict[tuple[object, ...], bytes] = {}

    def build(self) -> list[tuple[int, bytes]]:
        wish, counts = self.wish, self.wish.counts()
        writes: list[tuple[int, bytes]] = []
        total, held, inside = 0, b"", 0
        if self.api == "chat":
            held = self.event(self.chunk({"role": "assistant", "content": ""}, None))
        for i, tokens in enumerate(counts):
            total += tokens
            held += self.content(i, tokens, total)
            inside += 1
            if inside == wish.group or i == len(counts) - 1:
                writes.append((inside, held))
                held, inside = b"", 0
        writes.append((0, self.tail(total)))
        return writes

    def content(self, i: int, tokens: int, total: int) -> bytes:
        wish = self.wish
        keep = self.frame(b": keep-alive" + 2 * wish.line_end.encode()) if wish.keepalive else b""
        if i == wish.garbage_at:
            return keep + self.event_bytes(b"{not json")
        if i == wish.error_at:
            return keep + self.event({"error": {"message": "out of memory", "code": 500}})
        if self.api == "generate":
            return keep + self.event(self.generate_chunk(i, tokens, total, None))
        last = wish.late_finish and i == len(wish.counts()) - 1
        key = (i < wish.reasoning, i == 0 and wish.tool_call, last, total if self.running else 0)
        if key not in self._cache:
            self._cache[key] = self.event(self.chunk(self.delta(i), wish.finish if last else None, total))
        return keep + self._cache[key]

    def delta(self, i: int) -> dict[str, object]:
        wish = self.wish
        if i == 0 and wish.tool_call:
            call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}
            return {"role": None, "content": None, "reasoning_content": None, "tool_calls": [call]}
        thinks = i < wish.reasoning
        return {
            "role": None,
            "content": None if thinks else wish.text,
            "reasoning_content": wish.text if thinks else None,
            "tool_calls": None,
        }

    def chunk(self, delta: dict[str, object], finish: str | None, total: int = 0) -> dict[str, object]:
        usage = self.usage(total) if self.running and total else None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, "matched_stop": None}
        return {**self.base(), "choices": [choice], "usage": usage}

    def base(self) -> dict[str, object]:
        return {
            "id": "84ec04f79122433093cf65521686d5c3", "object": "chat.completion.chunk", "created": 1796002660,
            "model": "default",
        }  # fmt: skip

    def usage(self, total: int) -> dict[str, object]:
        wrong = self.wish.usage == "wrong"
        prompt, cached = self.wish.prompt_tokens, self.wish.cached_tokens
        return {
            "prompt_tokens": prompt, "total_tokens": prompt + total, "completion_tokens": 3 if wrong else total,
            "prompt_tokens_details": {"cached_tokens": cached} if cached else None, "reasoning_tokens": 0,
        }  # fmt: skip

    def generate_chunk(self, i: int, tokens: int, total: int, finish: object) -> dict[str, object]:
        wish = self.wish
        meta = {
            "id": "4d3d", "finish_reason": finish, "prompt_tokens": wish.prompt_tokens, "reasoning_tokens": 0,
            "completion_tokens": total, "cached_tokens": 30,
        }  # fmt: skip
        if finish is not None and wish.sglext:
            meta.update(wish.spec())
        text, ids = (wish.text * (i + 1), total) if wish.cumulative else (wish.text if tokens else "", tokens)
        return {"text": text, "output_ids": [7] * ids, "meta_info": meta}

    def tail(self, total: int) -> bytes:
        wish = self.wish
        out = b""
        if self.api == "generate":
            out += self.event(self.generate_chunk(len(wish.counts()) - 1, 0, total, {"type": wish.finish}))
        else:
            if not wish.late_finish and wish.finish:
                out += self.event(self.chunk({"content": None}, wish.finish))
            if self.wants_spec and wish.sglext:
                out += self.event(
                    {**self.base(), "choices": [], "sglext": {"spec_tokens_details": wish.spec()}}
                )
            if self.wants_usage and wish.usage != "none":
                out += self.event({**self.base(), "choices": [], "usage": self.usage(total)})
        if wish.done_event:
            out += self.event_bytes(b"[DONE]")
        if wish.framing == "chunked":
            out += b"0\r\n\r\n"
        elif wish.framing == "trailers":
            out += b"0\r\nX-Took: 1\r\n\r\n"
        return out

    def event(self, payload: dict[str, object]) -> bytes:
        return self.event_bytes(json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode())

    def event_bytes(self, payload: bytes) -> bytes:
        return self.frame(b"data: " + payload + 2 * self.wish.line_end.encode())

    def frame(self, data: bytes) -> bytes:
        return data if self.wish.framing == "close" else b"%x\r\n%b\r\n" % (len(data), data)


def whole_answer(wish: Wish, body: dict[str, object], api: str) -> dict[str, object]:
    total = sum(wish.counts())
    text = wish.text * len(wish.counts())
    meta = {
        "prompt_tokens": wish.prompt_tokens,
        "completion_tokens": total,
        "finish_reason": {"type": wish.finish},
    }
    meta.update(wish.spec() if wish.sglext else {})
    if api == "generate":
        return {"text": text, "output_ids": [7] * total, "meta_info": meta}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": wish.finish}
    if body.get("return_meta_info"):
        choice["meta_info"] = meta
    usage = {"prompt_tokens": wish.prompt_tokens, "completion_tokens": total, "total_tokens": total}
    return {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}


class Connection:
    """One client; one answer at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.fd = sock, sock.fileno()
        self.received = b""
        self.out = b""
        self.writes: list[tuple[int, bytes]] = []
        self.next = 0
        self.truth: dict[str, object] = {}
        self.sends: list[float] = []
        self.wish = Wish()
        self.content = 0


class MockServer:
    """Serves on one thread; `start()` runs it in the background of a test, `serve()` here and now."""

    def __init__(self, defaults: Wish | None = None, *, port: int = 0, silent_truth: bool = False) -> None:
        self.defaults = defaults or Wish()
        self.listener = socket.create_server(("127.0.0.1", port), backlog=2048)
        self.listener.settimeout(0)
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.truth: list[dict[str, object]] = []
        self.requests: list[dict[str, object]] = []
        self.accepted = 0
        self.version = "0.5.23"
        self.environment: dict[str, object] = {}
        self.generated_tokens = self.verify_calls = 0
        self._silent = silent_truth
        self._epoll = select.epoll()
        self._connections: dict[int, Connection] = {}
        self._due: list[tuple[float, int, Connection]] = []
        self._order = count()
        self._wake, self._waker = socket.socketpair()
        self._running = False

    # -- life -------------------------------------------------------------------------------------------------

    def start(self) -> MockServer:
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        self._waker.send(b"x")
        self._thread.join()

    def __enter__(self) -> MockServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def serve(self) -> None:
        self._epoll.register(self.listener.fileno(), select.EPOLLIN)
        self._epoll.register(self._wake.fileno(), select.EPOLLIN)
        self._running = True
        due, poll = self._due, self._epoll.poll
        while self._running:
            now = time.monotonic()
            sent = 0
            while due and due[0][0] <= now and sent < 64:
                self._write_next(heapq.heappop(due)[2])
                sent += 1
            wait = max(0.0, due[0][0] - time.monotonic()) if due else 0.1
            if 0 < wait < 0.001:
                select.select((self._epoll,), (), (), wait)
                wait = 0.0
            self._handle(poll(int(wait * 1000) / 1000))
        self._close()

    def _close(self) -> None:
        for connection in tuple(self._connections.values()):
            connection.sock.close()
        for thing in (self.listener, self._wake, self._waker):
            thing.close()
        self._epoll.close()

    def _handle(self, events: list[tuple[int, int]]) -> None:
        for fd, mask in events:
            if fd == self.listener.fileno():
                self._accept()
            elif fd == self._wake.fileno():
                self._running = False
            elif fd in self._connections:
                connection = self._connections[fd]
                if mask & select.EPOLLOUT and connection.out:
                    self._flush(connection)
                if mask & ~select.EPOLLOUT:
                    self._read(connection)

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except BlockingIOError:
                return
            sock.settimeout(0)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            self._connections[sock.fileno()] = Connection(sock)
            self._epoll.register(sock.fileno(), select.EPOLLIN)

    def _drop(self, connection: Connection) -> None:
        if self._connections.pop(connection.fd, None) is not None:
            connection.writes = []
            self._epoll.unregister(connection.fd)
            connection.sock.close()

    # -- requests ---------------------------------------------------------------------------------------------

    def _read(self, connection: Connection) -> None:
        try:
            data = connection.sock.recv(262144)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._drop(connection)
            return
        connection.received += data
        head, blank, rest = connection.received.partition(b"\r\n\r\n")
        if not blank:
            return
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:] if b": " in line)
        size = int(fields.get(b"content-length", b"0"))
        if len(rest) >= size:
            now = time.monotonic()
            connection.received = rest[size:]
            self._answer(connection, now, head, fields, rest[:size])

    def _answer(
        self, connection: Connection, now: float, head: bytes, fields: dict[bytes, bytes], raw: bytes
    ) -> None:
        method, path = head.split(b" ", 2)[:2]
        if method == b"GET" or not raw:
            self._plain(connection, 200, *self._get(path.decode()))
            return
        body = json.loads(raw)
        api = "generate" if path.endswith(b"/generate") else "chat"
        wish = self.defaults
        if "mock" in body:
            wish = replace(
                wish, **{f.name: body["mock"][f.name] for f in fields_of() if f.name in body["mock"]}
            )
        if not self._silent:
            self.requests.append({"path": path.decode(), "body": body, "fields": fields})
        self._begin(connection, now, wish, body, api)

    def _begin(
        self, connection: Connection, now: float, wish: Wish, body: dict[str, object], api: str
    ) -> None:
        connection.wish, connection.sends, connection.content, connection.next = wish, [], 0, 0
        connection.truth = {
            "id": wish.id,
            "received_s": now,
            "sends": connection.sends,
            "tokens": wish.counts(),
        }
        self.truth.append(connection.truth)
        if wish.close_silently:
            self._drop(connection)
            return
        if wish.status != 200:
            text, kind = json.dumps({"error": {"message": "too busy"}}), "application/json"
            self._plain(connection, wish.status, text, kind)
            return
        self.generated_tokens += sum(wish.counts())
        self.verify_calls += int(str(wish.spec()["spec_verify_ct"]))
        if not body.get("stream"):
            self._plain(connection, 200, json.dumps(whole_answer(wish, body, api)), "application/json")
            return
        framing = "" if wish.framing == "close" else "Transfer-Encoding: chunked\r\n"
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n{framing}"
        writes = self._frames(wish, body, api)
        connection.writes = [(0, f"{head}Connection: {wish.connection}\r\n\r\n".encode()), *writes]
        self._put(connection, connection.writes[0][1])
        connection.next = 1
        heapq.heappush(self._due, (now + wish.ttft_ms / 1e3, next(self._order), connection))

    def _frames(self, wish: Wish, body: dict[str, object], api: str) -> list[tuple[int, bytes]]:
        key = (api, json.dumps(body.get("stream_options")), body.get("return_spec_tokens_details"))
        if wish is not self.defaults:
            return Frames(wish, body, api).build()
        known = self.__dict__.setdefault("_known", {})
        if key not in known:
            known[key] = Frames(wish, body, api).build()
        return known[key]

    def _write_next(self, connection: Connection) -> None:
        """Send the next write of a stream, note the time, plan the one after it."""
        if not connection.writes:
            return
        wish = connection.wish
        content, data = connection.writes[connection.next]
        if self._misbehaves(connection, wish):
            return
        now = time.monotonic()
        self._put(connection, data)
        connection.next += 1
        if content:
            connection.sends.extend((now,) * content)
            connection.content += content
        if connection.next < len(connection.writes):
            tail = connection.next == len(connection.writes) - 1
            due = now if tail else connection.truth["received_s"] + self._offset(connection, wish)
            heapq.heappush(self._due, (due, next(self._order), connection))
            return
        connection.writes = []
        connection.truth["end_s"] = now
        if (wish.framing == "close" or wish.connection == "close") and not connection.out:
            self._drop(connection)

    def _offset(self, connection: Connection, wish: Wish) -> float:
        """When the next write is planned, in seconds from the request; never by adding up delays."""
        return (wish.ttft_ms + wish.gap_ms * (connection.next - 1)) / 1e3

    def _misbehaves(self, connection: Connection, wish: Wish) -> bool:
        at = connection.content
        if at == wish.stall_at:
            connection.writes = []
            return True
        if at == wish.reset_at:
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if at in {wish.reset_at, wish.close_at}:
            self._drop(connection)
            return True
        return False

    # -- bytes ------------------------------------------------------------------------------------------------

    def _put(self, connection: Connection, data: bytes) -> None:
        if connection.wish.cut:
            self._put_pieces(connection, data)
            return
        if connection.out:
            connection.out += data
            return
        try:
            sent = connection.sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._drop(connection)
            return
        if sent < len(data):
            connection.out = data[sent:]
            self._epoll.modify(connection.fd, select.EPOLLIN | select.EPOLLOUT)

    def _put_pieces(self, connection: Connection, data: bytes) -> None:
        """Small writes with a yield between them, so that the client reads them one by one."""
        cut = connection.wish.cut
        for at in range(0, len(data), cut):
            connection.sock.send(data[at : at + cut])
            time.sleep(0.0002)

    def _flush(self, connection: Connection) -> None:
        data, connection.out = connection.out, b""
        self._epoll.modify(connection.fd, select.EPOLLIN)
        self._put(connection, data)
        done = not connection.writes and not connection.out
        if done and (connection.wish.framing == "close" or connection.wish.connection == "close"):
            self._drop(connection)

    def _plain(self, connection: Connection, status: int, text: str, kind: str) -> None:
        after = f"Retry-After: {connection.wish.retry_after}\r\n" if connection.wish.retry_after else ""
        data = text.encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n{after}\r\n"
        self._put(connection, head.encode() + data)

    def _get(self, path: str) -> tuple[str, str]:
        if path.endswith("truth"):
            return json.dumps(self.truth), "application/json"
        if path.endswith("forget"):
            self.truth.clear()
            return "{}", "application/json"
        if path.endswith("server_info"):
            info = {
                "version": self.version,
                "internal_states": [{"avg_spec_accept_length": 1.0}],
                **self.environment,
            }
            return json.dumps(info), "application/json"
        if path.endswith("metrics"):
            return self._metrics(), "text/plain"
        if path.endswith("models"):
            return json.dumps(
                {"object": "list", "data": [{"id": "default", "object": "model"}]}
            ), "application/json"
        return "{}", "application/json"

    def _metrics(self) -> str:
        return (
            f'sglang:generation_tokens_total{{is_streaming="true"}} {self.generated_tokens}\n'
            f'sglang:spec_verify_calls_total{{x="y"}} {self.verify_calls}\n'
        )


def fields_of() -> tuple[object, ...]:
    return fields(Wish)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--ttft-ms", type=float, default=200.0)
    parser.add_argument("--gap-ms", type=float, default=10.0)
    parser.add_argument("--chunks", type=int, default=400)
    parser.add_argument("--group", type=int, default=1)
    options = parser.parse_args()
    wish = Wish(ttft_ms=options.ttft_ms, gap_ms=options.gap_ms, chunks=options.chunks, group=options.group)
    server = MockServer(wish, port=options.port, silent_truth=True)
    print(server.port, flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()


if __name__ == "__main__":
    main()
