"""Reading events into a Tally: a byte scan for the many content chunks, JSON for everything else.

The scan is sound because an unescaped `"delta":{` or `"content":"` cannot stand inside a JSON string. The first,
the last and one in 100 scanned chunks are read as JSON too; a difference ends the scan for that answer.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dflashctl.bench.tally import Tally

_QUOTE = 34
_CHECK_EVERY = 100
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(rb"\s*(\d+)")
_DONE = b"[DONE]"


class Reader(Protocol):
    """Reads the events of one answer."""

    def event(self, at_s: float, payload: bytes) -> None: ...

    def end(self) -> None: ...


class ChatReader:
    """Chat-completion stream chunks."""

    __slots__ = ("_last", "_scan", "_tally", "_tokens", "done")

    def __init__(self, tally: Tally, *, chunk_usage: bool) -> None:
        self._tally = tally
        self._tokens = chunk_usage
        self._scan = True
        self._last = b""  # the last scanned chunk: it may carry the finish reason
        self.done = False

    def event(self, at_s: float, payload: bytes) -> None:
        """Count one event that arrived at `at_s`."""
        delta = payload.find(b'"delta":{') if self._scan else -1
        if delta >= 0:
            content = payload.find(b'"content":"', delta)
            if content >= 0:
                if payload[content + 11] != _QUOTE:
                    self._scanned(at_s, payload, content + 10, reasoning=False)
                    return
            else:
                content = payload.find(b'"reasoning_content":"', delta)
                if content >= 0 and payload[content + 21] != _QUOTE:
                    self._scanned(at_s, payload, content + 20, reasoning=True)
                    return
        self._parsed(at_s, payload)

    def end(self) -> None:
        """The stream is over: what the last scanned chunk held besides its text, where nothing later said it."""
        tally = self._tally
        found = (_object(self._last) or {}) if self._last and tally.finish_reason is None else {}
        reason, usage = _choice(found).get("finish_reason"), found.get("usage")
        if isinstance(reason, str):
            tally.finish_reason = reason
        if isinstance(usage, dict) and tally.completion_tokens is None:
            tally.usage(usage)

    def _scanned(self, at_s: float, payload: bytes, quote: int, *, reasoning: bool) -> None:
        tally = self._tally
        if tally.chunks % _CHECK_EVERY == 0 and not self._agrees(payload, reasoning=reasoning):
            self._scan = False
            tally.mismatches += 1
            self._parsed(at_s, payload)
            return
        tally.chunk(at_s)
        self._last = payload
        if reasoning:
            tally.reasoning_chunks += 1
        if self._tokens:
            self._running_count(payload)
        parts = tally.reasoning_parts if reasoning else tally.text_parts
        if parts is not None:
            string = _STRING.match(payload, quote)
            parts.append(json.loads(string.group()) if string else "")

    def _running_count(self, payload: bytes) -> None:
        key = payload.rfind(b'"completion_tokens":')
        number = _NUMBER.match(payload, key + 20) if key >= 0 else None
        if number is not None:
            self._tally.tokens_so_far(int(number.group(1)))

    def _agrees(self, payload: bytes, *, reasoning: bool) -> bool:
        """Whether JSON sees the same kind of delta in the chunk."""
        delta = _delta(_object(payload) or {})
        return bool(delta.get("reasoning_content" if reasoning else "content"))

    def _parsed(self, at_s: float, payload: bytes) -> None:
        if payload.strip() == _DONE:
            self.done = True
            return
        found = _object(payload)
        if found is None:
            self._tally.fail("protocol", f"event is not a JSON object: {payload[:80]!r}")
            return
        if found.get("error"):
            self._tally.fail("stream", error_text(found["error"]))
            return
        self._content(at_s, found)
        self._besides(found)

    def _content(self, at_s: float, found: dict[str, object]) -> None:
        delta, tally = _delta(found), self._tally
        content = delta.get("content")
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
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

    def _besides(self, found: dict[str, object]) -> None:
        """Usage, the engine's counts and the finish reason."""
        usage, extension = found.get("usage"), found.get("sglext")
        if isinstance(usage, dict):
            self._tally.usage(usage)
        counts = extension.get("spec_tokens_details") if isinstance(extension, dict) else None
        if isinstance(counts, list):
            counts = counts[0] if counts else None
        if isinstance(counts, dict):
            self._tally.spec(counts)
        reason = _choice(found).get("finish_reason")
        if isinstance(reason, str):
            self._tally.finish_reason = reason


class GenerateReader:
    """Events of SGLang's /generate; each tells the tokens so far, its text is all so far or only the new."""

    __slots__ = ("_last", "_new_parts", "_tally", "done")

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._last = b""
        self._new_parts: list[bytes] = []
        self.done = False

    def event(self, at_s: float, payload: bytes) -> None:
        """Count one event that arrived at `at_s`."""
        tally = self._tally
        key = payload.rfind(b'"completion_tokens":')
        number = _NUMBER.match(payload, key + 20) if key >= 0 else None
        if number is None:
            self._without_count(payload)
            return
        count = int(number.group(1))
        if count > tally.seen_tokens:
            tally.chunk(at_s)
            tally.tokens_so_far(count)
        if tally.text_parts is not None:
            self._keep_text(payload)
        self._last = payload

    def end(self) -> None:
        """The stream is over: the last event has the engine's counts."""
        found = _object(self._last) if self._last else None
        meta = found.get("meta_info") if found else None
        if isinstance(meta, dict):
            self._tally.meta_info(meta)

    def _keep_text(self, payload: bytes) -> None:
        """Keep the text so far: replaced by a cumulative event, extended by an incremental one."""
        found = _object(payload) or {}
        text, ids, parts = found.get("text"), found.get("output_ids"), self._tally.text_parts
        if not isinstance(text, str) or parts is None:
            return
        whole = not isinstance(ids, list) or len(ids) >= self._tally.seen_tokens
        parts[:] = [text] if whole else [*parts, text]

    def _without_count(self, payload: bytes) -> None:
        if payload.strip() == _DONE:
            self.done = True
            return
        found = _object(payload)
        if found is not None and found.get("error"):
            self._tally.fail("stream", error_text(found["error"]))
        else:
            self._tally.fail("protocol", f"event without completion_tokens: {payload[:80]!r}")


def read_whole(tally: Tally, body: bytes) -> None:
    """An answer without stream, of either interface: counts only, no token times."""
    found = _object(body)
    if found is None:
        tally.fail("protocol", f"answer is not a JSON object: {body[:80]!r}")
        return
    if found.get("error"):
        tally.fail("stream", error_text(found["error"]))
        return
    choice = _choice(found)
    usage, meta = found.get("usage"), choice.get("meta_info") or found.get("meta_info")
    if isinstance(usage, dict):
        tally.usage(usage)
    if isinstance(choice.get("finish_reason"), str):
        tally.finish_reason = str(choice["finish_reason"])
    if isinstance(meta, dict):
        tally.meta_info(meta)
    _whole_text(tally, found, choice)


def _whole_text(tally: Tally, found: dict[str, object], choice: dict[str, object]) -> None:
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    content = message.get("content") or choice.get("text") or found.get("text")
    if tally.text_parts is not None and isinstance(content, str):
        tally.text_parts.append(content)
    if tally.reasoning_parts is not None and isinstance(message.get("reasoning_content"), str):
        tally.reasoning_parts.append(message["reasoning_content"])


def error_text(error: object) -> str:
    """The message of an OpenAI error object, or whatever stands there, cut to 300 characters."""
    message = error.get("message") if isinstance(error, dict) else None
    return str(message if message else error)[:300]


def _object(payload: bytes) -> dict[str, object] | None:
    try:
        found = json.loads(payload)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _choice(found: dict[str, object]) -> dict[str, object]:
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def _delta(found: dict[str, object]) -> dict[str, object]:
    delta = _choice(found).get("delta")
    return delta if isinstance(delta, dict) else {}
