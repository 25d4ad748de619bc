"""Control characters of others: what a server or a log says must not drive the terminal."""

from __future__ import annotations

import re

_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SHOWN = "?"


def tame(text: str) -> str:
    """The text without colour codes, and with `?` for every control character but line breaks and tabs."""
    if text.isprintable():
        return text
    return _CONTROL.sub(_SHOWN, _COLOUR.sub("", text))
