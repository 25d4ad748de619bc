"""Nearest names, for telling a mistyped option or value what it may have meant."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_CUTOFF = 0.6


def nearest_names(name: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """Up to `count` of the known names that resemble `name`, nearest first."""
    return tuple(difflib.get_close_matches(name, list(known), n=count, cutoff=_CUTOFF))
