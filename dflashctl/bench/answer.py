"""One request's answer while it is read: head, framing, events, counts; no sockets here."""

from __future__ import annotations

import json

from dflashctl.bench.dechunk import SIZES, Chunked, FramingError, Sized, UntilClose, whole_chunks
from dflashctl.bench.scan import ChatReader, Reader
from dflashctl.bench.scan_generate import GenerateReader
from dflashctl.bench.sse import Events
from dflashctl.bench.stream_event import error_text
from dflashctl.bench.tally import Tally
from dflashctl.bench.whole import read_whole

_HEAD_LIMIT = 65536
_OK = 200
_MANY_BYTES = 1000
_LINE_FEED = 10
_HEADS_KEPT = 256


class Head:
    """Status line and the header fields that framing needs."""

    __slots__ = ("chunked", "close", "event_stream", "interim", "length", "retry_after", "size", "status")

    def __init__(self, raw: bytes, size: int) -> None:
        """`raw` is the head without its blank line, `size` the bytes it took; raises FramingError."""
        lines = raw.split(b"\r\n")
        parts = lines[0].split(None, 2)
        if len(parts) < 2 or not parts[0].startswith(b"HTTP/1.") or not parts[1].isdigit():  # noqa: PLR2004
            raise FramingError(f"not an HTTP/1 status line: {lines[0][:60]!r}")
        self.size = size
        self.status = int(parts[1])
        self.interim = self.status // 100 == 1  # the real head follows
        fields = {n.strip().lower(): v.strip() for n, _, v in (line.partition(b":") for line in lines[1:])}
        self.chunked = fields.get(b"transfer-encoding", b"").lower().endswith(b"chunked")
        length = fields.get(b"content-length")
        self.length = int(length) if length is not None and length.isdigit() else None
        connection = fields.get(b"connection", b"").lower()
        self.close = connection == b"close" or (parts[0] == b"HTTP/1.0" and connection != b"keep-alive")
        self.event_stream = fields.get(b"content-type", b"").startswith(b"text/event-stream")
        self.retry_after = fields.get(b"retry-after", b"").decode("latin-1") or None


_heads: dict[bytes, Head] = {}  # a server sends the same head again and again


def read_head(data: bytes) -> Head | None:
    """The head at the start of `data` when it is whole; raises FramingError."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        if len(data) > _HEAD_LIMIT:
            raise FramingError(f"head of more than {_HEAD_LIMIT} bytes")
        return None
    raw = data[:end]
    head = _heads.get(raw)
    if head is None:
        if len(_heads) >= _HEADS_KEPT:
            _heads.clear()
        head = _heads[raw] = Head(raw, end + 4)
    return head


class Answer:
    """Feeds body bytes through framing and events into a Tally; `whole` once the body's end was seen."""

    __slots__ = (
        "_aligned", "_body", "_event", "_events", "_framing", "_many", "_reader", "_streamed", "head", "tally",
        "whole",
    )  # fmt: skip

    def __init__(self, *, api: str, chunk_usage: bool, keep_text: bool, text_end: int | None = None) -> None:
        self.tally = Tally(keep_text=keep_text, text_end=text_end)
        self.head: Head | None = None
        self.whole = False
        self._framing: Chunked | Sized | UntilClose = UntilClose()
        self._streamed = False
        self._events = Events()
        self._body: list[bytes] = []
        self._aligned = False  # chunked and between two chunks and two events
        self._reader: Reader = (
            GenerateReader(self.tally)
            if api == "generate"
            else ChatReader(self.tally, chunk_usage=chunk_usage)
        )
        self._event = self._reader.event
        self._many = self._reader.many

    @property
    def closes(self) -> bool:
        """Whether the server closes the connection after this answer."""
        return self.head is not None and self.head.close

    def begin(self, head: Head) -> None:
        """The head is known: choose the framing."""
        self.head = head
        self._streamed = head.event_stream and head.status == _OK
        if head.chunked:
            self._framing = Chunked()
            self._aligned = self._streamed
        elif head.length is not None:
            self._framing = Sized(head.length)
            self.whole = head.length == 0

    def feed(self, at_s: float, data: bytes) -> bool:
        """Bytes of the body that arrived at `at_s`; whether they ended the body or showed an error."""
        if self._aligned:
            line = data.find(b"\r\n", 0, 12)
            end = len(data) - 4
            if (
                SIZES[data[:line]] == end - line
                and data.startswith(b"data: ", line + 2)
                and data.find(b"\n", line + 2) == end  # JSON holds no raw line end
                and data[end + 1] == _LINE_FEED
            ):  # by far the most common: one chunk that holds one event, both whole
                self._event(at_s, data[line + 8 : end])
                return False
        if len(data) > _MANY_BYTES and self._streamed and isinstance(self._framing, Chunked):
            self._feed_row(at_s, data, self._framing)
        else:
            self._feed(at_s, data)
        return self.whole or self.tally.error is not None

    def _feed_row(self, at_s: float, data: bytes, framing: Chunked) -> None:
        """A large read: the rest of a cut chunk, then a row of whole ones, then the start of one or the end."""
        if not self._aligned and 0 < framing.left < len(data):
            left = framing.left
            self._feed(at_s, data[:left])
            data = data[left:]
        cut = data.rfind(b"\n\n\r\n") + 4
        bodies = whole_chunks(data[:cut]) if self._aligned and cut > _MANY_BYTES else None
        if bodies is not None:
            data = data[cut:]
            if not self._many(at_s, bodies):
                self._read_events(at_s, b"".join(bodies))
        if data:
            self._feed(at_s, data)

    def _read_events(self, at_s: float, body: bytes) -> None:
        for payload in self._events.feed(body):
            self._event(at_s, payload)

    def _feed(self, at_s: float, data: bytes) -> None:
        """The general case: cut anywhere."""
        if self.tally.error is not None and self.tally.error[0] == "protocol":
            return
        try:
            body = self._framing.feed(data)
        except FramingError as problem:
            self.tally.fail("protocol", str(problem))
            self._aligned = False
            return
        if self._framing.done:
            self.whole = True
        if self._streamed:
            self._read_events(at_s, body)
        elif body:
            self._body.append(body)
        self._aligned = self._streamed and self._framing.between and self._events.between

    def end(self, at_s: float, *, closed: bool) -> None:
        """No more bytes will come (`closed`: the connection has ended); judge what was read."""
        if closed and isinstance(self._framing, UntilClose):
            self.whole = True
        if self._streamed:
            for payload in self._events.flush():
                self._event(at_s, payload)
            self._reader.end()
        elif self.head is not None and self.whole:
            self._end_whole(self.head)
        self._judge()

    def _end_whole(self, head: Head) -> None:
        body = b"".join(self._body)
        if head.status == _OK:
            read_whole(self.tally, body)
        else:
            self.tally.fail("status", _status_text(head, body))

    def _judge(self) -> None:
        tally = self.tally
        if not self.whole:
            tally.fail("closed", f"the answer ended early, after {tally.chunks} content chunks")
        elif self._streamed and tally.finish_reason is None and not getattr(self._reader, "done", False):
            tally.fail("closed", "the stream ended without a finish reason or [DONE]")
        elif not (tally.chunks or tally.completion_tokens):
            tally.fail("empty", "the answer has no content and no token count")


def _status_text(head: Head, body: bytes) -> str:
    """What an error answer says: its message if it is JSON, else its first bytes."""
    text = body[:300].decode("utf-8", "replace").strip()
    if body.startswith(b"{"):
        try:
            found = json.loads(body)
            text = error_text(found.get("error") or found)
        except ValueError:
            pass
    after = f" (retry after {head.retry_after})" if head.retry_after else ""
    return f"HTTP {head.status}{after}: {text}"
