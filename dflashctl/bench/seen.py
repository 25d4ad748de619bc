"""JSON events whose content has been seen before: a stream's first and last chunks are alike in all answers."""

from __future__ import annotations

import json
import re

_TEXT = rb'"[ !#-\[\]-~]*"'  # printable ASCII without quote and backslash: a JSON string whatever it says
_HEAD = re.compile(
    rb'\{"id":%b,"object":%b,"created":[1-9]\d*,"model":%b,(?="choices":)' % (_TEXT, _TEXT, _TEXT)
)
_LONGEST_BYTES = 512
_KEPT = 256
_raw_decode = json.JSONDecoder().raw_decode  # json.loads guesses the encoding and looks for spaces first
_seen: dict[bytes, dict[str, object]] = {}


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


def seen_object(payload: bytes) -> dict[str, object] | None:
    """As `as_object`, but only from "choices" on: id, object, created and model may be those of an earlier chunk.

    Sound since these four are matched whole, so that what follows are members of the same object whatever they say.
    The result is shared: read it only.
    """
    head = _HEAD.match(payload)
    if head is None or len(payload) - head.end() > _LONGEST_BYTES:
        return as_object(payload)
    rest = payload[head.end() :]
    found = _seen.get(rest)
    if found is None:
        found = as_object(payload)
        if found is not None:
            if len(_seen) >= _KEPT:
                _seen.clear()
            _seen[rest] = found
    return found
