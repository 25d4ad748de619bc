"""Reading events into a Tally: a byte scan for the many content chunks, JSON for everything else.

The scan is sound because an unescaped `"delta":{` or `"content":"` cannot stand inside a JSON string, and no object
may end between the two. One in 100 scanned chunks, the first one among them, is read as JSON too all the same; a
difference ends the scan for that answer.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Protocol

from dflashctl.bench.chunk_parts import (
    COUNT_KEY,
    KEY_BYTES,
    NOWHERE,
    NUMBERS,
    after_text,
    take_counts,
    texts,
)
from dflashctl.bench.seen import SeenEvents, as_object, last_object, read_event, seen_before
from dflashctl.bench.stream_event import StreamEvent, first_choice

if TYPE_CHECKING:
    from dflashctl.bench.tally import Tally

_QUOTE = 34
_NO_TEXT = (b'"', b"")  # after the opening quote: an empty text, or the end of an event that was cut off
_ENDS = b'"\n'
_CHECK_EVERY = 100
_NO_PREFIX = b"\n"  # JSON holds no raw line end
_FIELD = b"data: "
_USAGE = b'"choices":[],"usage":{'
_COUNTS = b'"choices":[],"sglext":{"spec_tokens_details":{'
DONE = b"[DONE]"
_answers = count()


class Reader(Protocol):
    """Reads the events of one answer."""

    def event(self, at_s: float, payload: bytes) -> None:
        """The payload of one `data:` field that arrived at `at_s`."""

    def many(self, at_s: float, events: list[bytes]) -> bool:
        """Whole events that arrived together, if all of them can be counted at once; else False and nothing done."""

    def end(self) -> None: ...


class ChatReader:
    """Chat-completion stream chunks."""

    __slots__ = (
        "_after", "_at", "_check_at", "_events", "_kept", "_last", "_prefix", "_raw", "_scan", "_tally", "_thinks",
        "_tokens", "done",
    )  # fmt: skip

    def __init__(self, tally: Tally, *, chunk_usage: bool) -> None:
        self._tally = tally
        self._tokens = chunk_usage
        self._scan = True
        self._check_at = next(_answers) % _CHECK_EVERY  # one in 100 over all answers, not the first of each
        self._last = b""  # the last scanned chunk: it may carry the finish reason
        self._prefix = (
            _NO_PREFIX  # all before the text of the last scanned chunk: of most streams it stays the same
        )
        self._at = 0  # its length, where the text begins
        self._kept = tally.text  # where the texts of these chunks go
        self._raw = tally.text.escaped if tally.text is not None else None  # the same, shortened now and then
        self._after = NOWHERE  # what follows a text in these chunks, from its closing quote on
        self._thinks = False
        self._events = SeenEvents()
        self.done = False

    def event(self, at_s: float, payload: bytes) -> None:
        tally = self._tally
        chunks = tally.chunks
        if not (
            payload.startswith(self._prefix)
            and len(payload) > self._at
            and payload[self._at] != _QUOTE
            and chunks % _CHECK_EVERY != self._check_at
        ) and not self._scanned_anew(at_s, payload):
            return
        if chunks:  # Tally.chunk, written out
            gap = at_s - tally.last_s
            tally.gaps_s.append(gap)
            if gap == 0.0:
                tally.coalesced_chunks += 1
        else:
            tally.first_s = at_s
        tally.chunks = chunks + 1
        tally.last_s = at_s
        self._last = payload
        if self._thinks:
            tally.reasoning_chunks += 1
        # The rest is _take, written out: at once, while the chunk is in the processor's cache.
        if self._tokens:
            try:
                start = payload.rindex(COUNT_KEY) + KEY_BYTES
                count = NUMBERS[payload[start : payload.find(b",", start)]]
                tally.chunk_tokens.append(count - tally.seen_tokens)
                tally.seen_tokens = count
            except (ValueError, OverflowError):
                take_counts(tally, [payload])
        raw = self._raw
        if raw is not None:
            end = payload.find(self._after, self._at)
            text = payload[self._at : end]
            raw += texts([payload], self._at, NOWHERE) if end < 0 or b'","' in text else text

    def _scanned_anew(self, at_s: float, payload: bytes) -> bool:
        """Whether an event unlike the scanned chunks before it is one after all; if not, it has been read as JSON."""
        if payload == DONE:
            self.done = True
            return False
        rest = self._events.rest(payload)
        event = seen_before(rest)
        if event is None:
            if rest is not None and self._last_counts(rest):
                return False
            if self._scan and self._learn(payload):
                return True
            event = read_event(payload, rest)
        if event is None:
            self._tally.fail("protocol", f"event is not a JSON object: {payload[:80]!r}")
        else:
            self._parsed(at_s, event)
        return False

    def _last_counts(self, rest: bytes) -> bool:
        """Whether these were the usage or the engine's counts alone, which differ from answer to answer."""
        if rest.startswith(_USAGE):
            usage = last_object(rest, _USAGE, "}")
            if usage is not None:
                self._tally.usage(usage)
                return True
        elif rest.startswith(_COUNTS):
            counts = last_object(rest, _COUNTS, "}}")
            if counts is not None:
                self._tally.spec(counts)
                return True
        return False

    def _learn(self, payload: bytes) -> bool:
        """Find the text of a content or reasoning delta, have JSON agree, and remember what stands around it."""
        delta = payload.find(b'"delta":{')
        if delta < 0:
            return False
        at, thinks = payload.find(b'"content":"', delta) + 11, False
        if at < delta:
            at, thinks = payload.find(b'"reasoning_content":"', delta) + 21, True
        if at < delta or payload[at : at + 1] in _NO_TEXT or payload.find(b"}", delta, at) >= 0:
            return False
        due = self._tally.chunks % _CHECK_EVERY == self._check_at
        if due and not self._agrees(payload, reasoning=thinks):
            self._scan = False
            self._prefix = _NO_PREFIX
            self._tally.mismatches += 1
            return False
        self._prefix, self._at, self._thinks = payload[:at], at, thinks
        self._after = after_text(payload, at)
        kept = self._kept = self._tally.reasoning if thinks else self._tally.text
        if kept is not None:
            kept.shorten()
            self._raw = kept.escaped
        return True

    def many(self, at_s: float, events: list[bytes]) -> bool:
        prefix = self._prefix
        if prefix is _NO_PREFIX:
            return False  # the start of an answer, or one that is not scanned
        tally, start = self._tally, _FIELD + prefix
        at, count = len(start), len(events)
        alike = [
            event
            for event in events
            if event.startswith(start)
            and event.find(b"\n", at) == len(event) - 2  # JSON holds no raw line end
            and event.endswith(b"\n\n")
            and event[at] not in _ENDS
        ]
        if len(alike) < count:
            return False  # the first and the last chunks of an answer, with which it cannot come out
        due = (self._check_at - tally.chunks) % _CHECK_EVERY
        if due < count and not self._agrees(events[due][len(_FIELD) : -2], reasoning=self._thinks):
            return False
        tally.chunks_together(at_s, count)
        self._last = events[-1][len(_FIELD) : -2]
        if self._thinks:
            tally.reasoning_chunks += count
        self._take(events, at)
        return True

    def end(self) -> None:
        """The stream is over: what the last scanned chunk held besides its text, where nothing later said it."""
        tally = self._tally
        found = (as_object(self._last) or {}) if self._last and tally.finish_reason is None else {}
        reason, usage = first_choice(found).get("finish_reason"), found.get("usage")
        if isinstance(reason, str):
            tally.finish_reason = reason
        if isinstance(usage, dict) and tally.completion_tokens is None:
            tally.usage(usage)

    def _take(self, chunks: list[bytes], at: int) -> None:
        """The running token count and the text, where they are wanted; `at`: where each chunk's text begins."""
        tally = self._tally
        if self._tokens:
            take_counts(tally, chunks)
        if self._kept is not None:
            self._kept.add_escaped(texts(chunks, at, self._after))

    def _agrees(self, payload: bytes, *, reasoning: bool) -> bool:
        """Whether JSON sees the same kind of delta in the chunk."""
        event = StreamEvent(as_object(payload) or {})
        return bool(event.reasoning if reasoning else event.content)

    def _parsed(self, at_s: float, event: StreamEvent) -> None:
        tally = self._tally
        if event.error is not None:
            tally.fail("stream", event.error)
            return
        usage, reason = event.usage, event.finish_reason
        if event.is_chunk:
            self._chunk_parsed(at_s, event)
        if reason is not None:
            tally.finish_reason = reason
        if usage is not None and not (self._tokens and event.chosen and reason is None):  # else a running one
            tally.usage(usage)
        if event.counts is not None:
            tally.spec(event.counts)

    def _chunk_parsed(self, at_s: float, event: StreamEvent) -> None:
        tally, usage = self._tally, event.usage
        tally.chunk(at_s)
        if self._tokens and usage is not None and isinstance(tokens := usage.get("completion_tokens"), int):
            tally.tokens_so_far(tokens)
        if event.reasoning is not None:
            tally.reasoning_chunks += 1
            if tally.reasoning is not None:
                tally.reasoning.add(event.reasoning)
        if event.content is not None and tally.text is not None:
            tally.text.add(event.content)
