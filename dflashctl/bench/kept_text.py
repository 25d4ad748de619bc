"""An answer's text while it grows: a byte a letter, as JSON escapes it, and read once at the end."""

from __future__ import annotations

import json

_read = json.JSONDecoder(strict=False).decode
_NEVER = float("inf")
_ROOM = 8  # bytes a wanted character before the rest is dropped: seldom, since that means reading it


class KeptText:
    """`end`: only so many characters of its end are wanted; None: all of it.

    `escaped` is always the same object: who adds to it directly calls `shorten` at times.
    """

    __slots__ = ("_end", "_full", "escaped")

    def __init__(self, end: int | None = None) -> None:
        self._end = end
        self.escaped = bytearray()
        self._full = _NEVER if end is None else end * _ROOM

    def add_escaped(self, piece: bytes) -> None:
        """Whole characters as they stand between the quotes of a JSON string."""
        self.escaped += piece
        self.shorten()

    def add(self, piece: str) -> None:
        self.add_escaped(_escaped(piece))

    def replace(self, text: str) -> None:
        """`text` is all of it so far."""
        self.escaped.clear()
        self.add(text if self._end is None else text[-self._end :])

    def whole(self) -> str:
        """The text, or its wanted end."""
        text = self.escaped.decode("utf-8", "replace")
        if "\\" in text:
            text = _unescaped(text)
        return text if self._end is None else text[-self._end :]

    def shorten(self) -> None:
        """Drop what is not wanted, once it is much."""
        if len(self.escaped) > self._full:
            self.escaped[:] = _escaped(self.whole())
            self._full = max(self._full, 2 * len(self.escaped))


def _escaped(text: str) -> bytes:
    return json.dumps(text)[1:-1].encode()


def _unescaped(text: str) -> str:
    try:
        return str(_read(f'"{text}"'))
    except ValueError:  # not JSON, which only one in 100 chunks is checked for
        return text
