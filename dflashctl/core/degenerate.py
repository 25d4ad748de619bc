"""Degenerate output: loops such as "and and and" and runs of one character, which speculation loves."""

from __future__ import annotations

from dataclasses import dataclass

# A loop must fill this many characters and this many rounds before it counts: lists and tables repeat a little.
MIN_LOOP_CHARACTERS = 40
MIN_ROUNDS = 6
LONGEST_UNIT = 120


@dataclass(frozen=True, kw_only=True)
class Loop:
    """`unit` repeated `rounds` times in a row, from character `start` of the text."""

    unit: str
    rounds: int
    start: int


def find_loop(text: str) -> Loop | None:
    """The longest run of a repeated unit, None when the text has no loop worth naming.

    Only the end matters to a server that cannot stop, but a loop in the middle is just as wrong; the whole text
    is scanned, in O(characters x LONGEST_UNIT).
    """
    best: Loop | None = None
    for size in range(1, min(LONGEST_UNIT, len(text) // MIN_ROUNDS) + 1):
        found = _longest_run(text, size)
        if found and (best is None or found.rounds * len(found.unit) > best.rounds * len(best.unit)):
            best = found
    return best


def _longest_run(text: str, size: int) -> Loop | None:
    """The longest stretch in which each character equals the one `size` before it."""
    start = best_start = best_length = 0
    for index in range(size, len(text) + 1):
        if index < len(text) and text[index] == text[index - size]:
            continue
        length = index - start
        if length > best_length:
            best_start, best_length = start, length
        start = index - size + 1
    rounds = best_length // size
    unit = text[best_start : best_start + size]
    if best_length < MIN_LOOP_CHARACTERS or rounds < MIN_ROUNDS or _is_ruler(unit):
        return None
    return Loop(unit=unit, rounds=rounds, start=best_start)


def _is_ruler(unit: str) -> bool:
    """Blank runs and drawn lines (`-----`, `=====`) are layout, not a loop."""
    return not unit.strip(" \t\n-=_*#.|+~")
