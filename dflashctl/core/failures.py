"""Failed requests: how many a run may have before its figures say nothing, and what they failed with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

# Share of requests. Those that fail are seldom a random draw (the longest time out, the last meet a dead server), so
# that beyond a few the figures of the others are those of another load.
TOLERATED = 0.05
# How an answer ends when the server made it to its end; "unknown" is a server that does not say.
_ENDED = frozenset({"stop", "length", "tool_calls", "function_call", "unknown"})


def too_many(bad: int, requests: int) -> bool:
    return bad > TOLERATED * requests


def cut_off(finish_reasons: Mapping[str, int]) -> dict[str, int]:
    """Answers that came whole over HTTP, but that the server broke off ("abort")."""
    return {reason: count for reason, count in finish_reasons.items() if reason not in _ENDED}


def counted(counts: Mapping[str, int]) -> str:
    """Names and counts, the most frequent first: `HTTP 429 9, closed 2`."""
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
