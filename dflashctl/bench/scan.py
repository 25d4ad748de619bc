"""Reading events into a Tally: a byte scan for the many content chunks, JSON for everything else.

The scan is sound because an unescaped `"delta":{` or `"content":"` cannot stand inside a JSON string, and no object
may end between the two. One in 100 scanned chunks, the first one among them, is read as JSON too all the same; a
difference ends the scan for that answer.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import TYPE_CHECKING, Protocol

from dflashctl.bench.seen import as_object, seen_object

if TYPE_CHECKING:
    from dflashctl.bench.tally import Tally

_QUOTE = 34
_CHECK_EVERY = 100
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_CONTENT = re.compile(rb'"delta":\{(?:"role":(?:null|"assistant"),)?"content":"[^"]')
_NUMBER = re.compile(rb"\s*(\d+)")
DONE = b"[DONE]"
COUNT_KEY = b'"completion_tokens":'
_answers = count()


class Reader(Protocol):
    """Reads the events of one answer."""

    def event(self, at_s: float, payload: bytes) -> None:
        """The payload of one `data:` field that arrived at `at_s`."""

    def many(self, at_s: float, body: bytes) -> bool:
        """Whole events that arrived together, if all of them can be counted at once; else False and nothing done."""

    def end(self) -> None: ...


class ChatReader:
    """Chat-completion stream chunks."""

    __slots__ = (
        "_at",
        "_check_at",
        "_last",
        "_plain",
        "_prefix",
        "_scan",
        "_tally",
        "_thinks",
        "_tokens",
        "done",
    )

    def __init__(self, tally: Tally, *, chunk_usage: bool) -> None:
        self._tally = tally
        self._tokens = chunk_usage
        self._plain = not chunk_usage and tally.text_parts is None  # times and numbers alone
        self._scan = True
        self._check_at = next(_answers) % _CHECK_EVERY  # one in 100 over all answers, not the first of each
        self._last = b""  # the last scanned chunk: it may carry the finish reason
        self._prefix = (
            b"\n"  # all before the text of the last scanned chunk: of most streams it stays the same
        )
        self._at = 0  # its length, where the text begins
        self._thinks = False
        self.done = False

    def event(self, at_s: float, payload: bytes) -> None:
        tally = self._tally
        chunks = tally.chunks
        if (
            payload.startswith(self._prefix)
            and payload[self._at] != _QUOTE
            and chunks % _CHECK_EVERY != self._check_at
        ):
            gap = at_s - tally.last_s  # Tally.chunk, written out
            tally.gaps_s.append(gap)
            if gap == 0.0:
                tally.coalesced_chunks += 1
            tally.chunks = chunks + 1
            tally.last_s = at_s
            self._last = payload
            if self._thinks:
                tally.reasoning_chunks += 1
            if not self._plain:
                self._keep(payload)
        elif not (self._scan and self._learn(payload)):
            self._parsed(at_s, payload)
        else:
            tally.chunk(at_s)
            self._last = payload
            if self._thinks:
                tally.reasoning_chunks += 1
            self._keep(payload)

    def _learn(self, payload: bytes) -> bool:
        """Find the text of a content or reasoning delta, have JSON agree, and remember what stands before it."""
        delta = payload.find(b'"delta":{')
        if delta < 0:
            return False
        at, thinks = payload.find(b'"content":"', delta) + 11, False
        if at < delta:
            at, thinks = payload.find(b'"reasoning_content":"', delta) + 21, True
        if at < delta or payload[at] == _QUOTE or payload.find(b"}", delta, at) >= 0:
            return False
        due = self._tally.chunks % _CHECK_EVERY == self._check_at
        if due and not self._agrees(payload, reasoning=thinks):
            self._scan = False
            self._prefix = b"\n"
            self._tally.mismatches += 1
            return False
        self._prefix, self._at, self._thinks = payload[:at], at, thinks
        return True

    def many(self, at_s: float, body: bytes) -> bool:
        tally = self._tally
        if not (self._scan and self._plain) or not body.endswith(b"}\n\n") or b'"content":""' in body:
            return False  # the first and the last chunks of an answer, with which it cannot come out
        count = len(_CONTENT.findall(body))
        last = body.rfind(b"data: ")
        if (
            2 * count != body.count(b"\n")
            or not body.startswith(b"data: ")
            or count != body.count(b"data: {")
        ):
            return False
        payload = body[last + 6 : -2]
        if not self._agrees(payload, reasoning=False):  # one in a read, always the last
            return False
        tally.chunks_together(at_s, count)
        self._last = payload
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

    def _keep(self, payload: bytes) -> None:
        """The running token count and the text, where they are wanted."""
        tally = self._tally
        if self._tokens:
            self._running_count(payload)
        parts = tally.reasoning_parts if self._thinks else tally.text_parts
        if parts is not None:
            text = payload[self._at : payload.find(b'"', self._at)]
            if b"\\" in text:  # escapes, perhaps of the quote found
                string = _STRING.match(payload, self._at - 1)
                parts.append(json.loads(string.group()) if string else "")
            else:
                parts.append(text.decode("utf-8", "replace"))

    def _running_count(self, payload: bytes) -> None:
        count = count_at(payload, payload.rfind(COUNT_KEY))
        if count is not None:
            self._tally.tokens_so_far(count)

    def _agrees(self, payload: bytes, *, reasoning: bool) -> bool:
        """Whether JSON sees the same kind of delta in the chunk."""
        delta = _delta(as_object(payload) or {})
        return bool(delta.get("reasoning_content" if reasoning else "content"))

    def _parsed(self, at_s: float, payload: bytes) -> None:
        if payload == DONE:
            self.done = True
            return
        found = seen_object(payload)
        if found is None:
            self._tally.fail("protocol", f"event is not a JSON object: {payload[:80]!r}")
            return
        if found.get("error"):
            self._tally.fail("stream", error_text(found["error"]))
            return
        choice, usage, extension = first_choice(found), found.get("usage"), found.get("sglext")
        delta, reason = choice.get("delta"), choice.get("finish_reason")
        if isinstance(delta, dict):
            self._delta_parsed(at_s, found, delta)
        if isinstance(reason, str):
            self._tally.finish_reason = reason
        running = self._tokens and choice and not isinstance(reason, str)
        if isinstance(usage, dict) and not running:
            self._tally.usage(usage)
        if isinstance(extension, dict):
            self._extension(extension)

    def _delta_parsed(self, at_s: float, found: dict[str, object], delta: dict[str, object]) -> None:
        tally = self._tally
        content, reasoning = delta.get("content"), delta.get("reasoning_content") or delta.get("reasoning")
        if not (content or reasoning or delta.get("tool_calls")):
            return
        tally.chunk(at_s)
        usage = found.get("usage")
        if self._tokens and isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            tally.tokens_so_far(usage["completion_tokens"])
        if reasoning:
            tally.reasoning_chunks += 1
        if tally.reasoning_parts is not None and isinstance(reasoning, str):
            tally.reasoning_parts.append(reasoning)
        if tally.text_parts is not None and isinstance(content, str):
            tally.text_parts.append(content)

    def _extension(self, extension: dict[str, object]) -> None:
        """SGLang's additions: the engine's exact counts."""
        counts = extension.get("spec_tokens_details")
        if isinstance(counts, list):
            counts = counts[0] if counts else None
        if isinstance(counts, dict):
            self._tally.spec(counts)


def count_at(payload: bytes, key: int) -> int | None:
    """The number behind COUNT_KEY at `key`; None when there is no key (-1) or no number."""
    if key < 0:
        return None
    start = key + len(COUNT_KEY)
    try:
        return int(payload[start : payload.find(b",", start)])
    except ValueError:  # the last member of its object, or null
        number = _NUMBER.match(payload, start)
        return int(number.group(1)) if number is not None else None


def error_text(error: object) -> str:
    """The message of an OpenAI error object, or whatever stands there, cut to 300 characters."""
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or error)[:300]


def first_choice(found: dict[str, object]) -> dict[str, object]:
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _delta(found: dict[str, object]) -> dict[str, object]:
    delta = first_choice(found).get("delta")
    return delta if isinstance(delta, dict) else {}
