"""What is taken from content chunks that the scan has found: token counts and texts, several chunks at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.bench.tally import Tally

COUNT_KEY = b'"completion_tokens":'
KEY_BYTES = len(COUNT_KEY)
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"')
_NUMBER = re.compile(rb"\s*(\d+)")
_REMEMBERED = 4096
_BACKSLASH = 92
NOWHERE = b"\n\n"  # no event holds a blank line


class _Numbers(dict[bytes, int]):
    """Numbers by their digits, the low ones remembered; ValueError for what is none."""

    def __missing__(self, digits: bytes) -> int:
        number = int(digits)
        if number < _REMEMBERED and digits.isdigit():
            self[digits] = number
        return number


NUMBERS = _Numbers()


def take_counts(tally: Tally, chunks: Sequence[bytes]) -> None:
    """The server's running token count in each of some content chunks."""
    try:
        starts = [chunk.rindex(COUNT_KEY) + KEY_BYTES for chunk in chunks]
        counts = [NUMBERS[c[at : c.find(b",", at)]] for c, at in zip(chunks, starts)]  # noqa: B905 - as many
    except ValueError:  # a chunk without a count, or one whose count is the last member of its object
        counts = [n for chunk in chunks if (n := count_at(chunk, chunk.rfind(COUNT_KEY))) is not None]
    if counts:
        tally.running_counts(counts)


def after_text(payload: bytes, at: int) -> bytes:
    """The closing quote of the text at `at`, and the name that follows it; NOWHERE where no name does.

    No such bytes can stand in a text: a quote, a comma and a quote, of which the second is not escaped, end it, and
    then comes no name at once.
    """
    end = payload.find(b'"', at)
    if payload[end - 1] != _BACKSLASH and payload.startswith(b'","', end):  # nearly always, and quicker
        return payload[end : payload.find(b":", end) + 1]
    string = _STRING.match(payload, at - 1)
    end = string.end() - 1 if string is not None else -1
    return payload[end : payload.find(b":", end) + 1] if payload.startswith(b'","', end) else NOWHERE


def texts(chunks: Sequence[bytes], at: int, after: bytes) -> bytes:
    """The texts that begin at `at`, still escaped, one behind the other."""
    try:
        found = b"".join([chunk[at : chunk.index(after, at)] for chunk in chunks])
    except ValueError:
        found = b'","'
    if b'","' not in found:  # else one of them goes on otherwise than the first
        return found
    strings = [_STRING.match(b'"' + chunk[at:]) for chunk in chunks]
    return b"".join([string.group()[1:-1] for string in strings if string is not None])


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
