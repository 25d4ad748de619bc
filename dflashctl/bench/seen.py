"""Events whose content has been seen before: a stream's first and last chunks are alike in all answers."""

from __future__ import annotations

import json
import re

from dflashctl.bench.stream_event import StreamEvent

_TEXT = rb'"[ !#-\[\]-~]*"'  # printable ASCII without quote and backslash: a JSON string whatever it says
_HEAD = re.compile(
    rb'\{"id":%b,"object":%b,"created":[1-9]\d*,"model":%b,(?="choices":)' % (_TEXT, _TEXT, _TEXT)
)
_LONGEST_BYTES = 512
_KEPT = 256
_raw_decode = json.JSONDecoder().raw_decode  # json.loads guesses the encoding and looks for spaces first
_seen: dict[bytes, StreamEvent] = {}


def as_object(payload: bytes) -> dict[str, object] | None:
    """The JSON object in `payload`, None if it is not one."""
    try:
        text = payload.decode()
        found, end = _raw_decode(text)
        if end != len(text):
            found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class SeenEvents:
    """The events of one answer: all before "choices" is mostly the same in each of them, and says nothing.

    Leaving it out is sound since it is matched whole: what follows are members of the same object whatever it says.
    """

    __slots__ = ("_head", "_size")

    def __init__(self) -> None:
        self._head = b"\n"  # of the last event that had one; JSON holds no raw line end
        self._size = 0

    def rest(self, payload: bytes) -> bytes | None:
        """`payload` from "choices" on; None when other members stand before it than id, object, created and model."""
        if not payload.startswith(self._head):
            head = _HEAD.match(payload)
            if head is None:
                return None
            self._head, self._size = head.group(), head.end()
        return payload[self._size :]


def last_object(rest: bytes, start: bytes, closing: str) -> dict[str, object] | None:
    """The object at the end of `start`, if nothing but `closing` follows it: the rest of the event then says no more.

    None for anything else, be it an event or not.
    """
    try:
        text = rest[len(start) - 1 :].decode()
        found, end = _raw_decode(text)
    except ValueError:
        return None
    return found if text[end:] == closing and isinstance(found, dict) else None


def seen_before(rest: bytes | None) -> StreamEvent | None:
    """What an event with this rest said the last time."""
    return _seen.get(rest) if rest is not None else None


def read_event(payload: bytes, rest: bytes | None) -> StreamEvent | None:
    """What the event says, None when it is no JSON object; remembered unless it is sure to be another one next time."""
    found = as_object(payload if rest is None else b"{" + rest)
    if found is None:
        return None
    event = StreamEvent(found)
    if rest is not None and len(rest) <= _LONGEST_BYTES and event.usage is None and event.counts is None:
        if len(_seen) >= _KEPT:
            _seen.clear()
        _seen[rest] = event
    return event
