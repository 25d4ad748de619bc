"""Whether two servers mean the same model by their names for it."""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

_CACHED = re.compile(r"models--(?:(?P<organisation>[^/]+?)--)?(?P<name>[^/]+?)/snapshots/[^/]+$")


class Likeness(Enum):
    """`SAME` shares a name, `ALIKE` differs only in form: case, no organisation, a folder before the name."""

    SAME = "same"
    ALIKE = "alike"
    OTHER = "other"


def likeness(one: Collection[str], other: Collection[str]) -> Likeness:
    """How the names of one model compare with those of another; who tells no name may be anything."""
    if not one or not other or set(one) & set(other):
        return Likeness.SAME
    alike = any(_same_but_for_form(_parts(a), _parts(b)) for a in one for b in other)
    return Likeness.ALIKE if alike else Likeness.OTHER


def _same_but_for_form(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[1] == other[1] and (one[0] == other[0] or not (one[0] and other[0]))


def _parts(name: str) -> tuple[str, str]:
    """Organisation (empty where none is told) and own name, in lower case; a cached snapshot is its repository."""
    path = name.rstrip("/").lower()
    cached = _CACHED.search(path)
    if cached:
        return cached["organisation"] or "", cached["name"]
    before, _, own = path.rpartition("/")
    return ("" if "/" in before or path.startswith(("/", ".", "~")) else before), own
