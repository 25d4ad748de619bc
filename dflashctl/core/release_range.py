"""Which releases a profile is meant for: ">=0.5.21,<0.6" and the like."""

from __future__ import annotations

import operator
import re
from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_PART = re.compile(r"(?P<how>>=|<=|==|!=|~=|>|<|)\s*v?(?P<release>\d+(?:\.\d+)*)")
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)")
_HOW: dict[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}


def is_range(text: str) -> bool:
    """Whether the text is comparisons with releases, apart by commas."""
    return all(_PART.fullmatch(part.strip()) for part in text.split(","))


def in_range(release: str, text: str) -> bool:
    """Whether the release meets every comparison; by its numbers, so 0.5.23.post1 and 0.5.23+x are 0.5.23.

    "~=0.5.21" is that release or a later one of 0.5.
    """
    found = _NUMBERS.match(release)
    have = found[1].split(".")[:3] if found else []
    return all(_meets(have, word.strip()) for word in text.split(","))


def _meets(have: list[str], word: str) -> bool:
    part = _PART.fullmatch(word)
    if part is None:
        return False
    wanted = part["release"].split(".")
    if part["how"] == "~=":
        return _compared(have, wanted) >= 0 and _compared(have[: len(wanted) - 1], wanted[:-1]) == 0
    return _HOW[part["how"]](_compared(have, wanted), 0)


def _compared(a: list[str], b: list[str]) -> int:
    """Below, at or above 0 as `a` is older than, the same as or newer than `b`; missing numbers are 0."""
    return next((int(x) - int(y) for x, y in zip_longest(a, b, fillvalue="0") if int(x) != int(y)), 0)
