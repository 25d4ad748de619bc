"""The nearest known words to one that nobody knows."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def nearest(word: str, known: Sequence[str]) -> str:
    """A hint: the nearest known words, all of them when none is near."""
    near = get_close_matches(word, known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"there are {', '.join(known)}"
