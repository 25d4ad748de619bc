"""Spans of a load run: the whole one and the one in which the load stood at its level."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.bench_record import RequestRecord, Window

if TYPE_CHECKING:
    from collections.abc import Sequence


def whole_window(records: Sequence[RequestRecord]) -> Window | None:
    """From the first send to the last end, over the requests that were sent; None when none was."""
    starts = [r.sent_s for r in records if r.sent_s is not None]
    ends = [r.end_s for r in records if r.end_s is not None]
    return Window(start_s=min(starts), end_s=max(ends)) if starts and ends else None


def without_pauses(parts: Sequence[Sequence[RequestRecord]]) -> tuple[RequestRecord, ...]:
    """The records of parts that ran one after the other, each moved to where the one before it ended.

    What lies between the turns of conversations is the client's (it starts its processes again), not the server's.
    """
    moved: list[RequestRecord] = []
    end_s: float | None = None
    for records in parts:
        window = whole_window(records)
        by_s = window.start_s - end_s if window is not None and end_s is not None else 0.0
        moved += [_earlier(record, by_s) for record in records]
        end_s = window.end_s - by_s if window is not None else end_s
    return tuple(moved)


def _earlier(record: RequestRecord, by_s: float) -> RequestRecord:
    def at(moment_s: float | None) -> float | None:
        return None if moment_s is None else moment_s - by_s

    if not by_s:
        return record
    return replace(
        record,
        intended_s=record.intended_s - by_s,
        sent_s=at(record.sent_s),
        first_s=at(record.first_s),
        last_s=at(record.last_s),
        end_s=at(record.end_s),
    )


def steady_window(records: Sequence[RequestRecord]) -> Window | None:
    """The span in which the load stood at its level: after the ramp-up, before the last requests drain.

    From when the number in flight first reached 90 % of its highest value until it last left it.
    None when nothing was in flight or the span is empty.
    """
    edges = [(r.sent_s, 1) for r in records if r.sent_s is not None and r.end_s is not None]
    edges += [(r.end_s, -1) for r in records if r.sent_s is not None and r.end_s is not None]
    level, levels = 0, []
    for at, step in sorted(edges):
        level += step
        levels.append((at, level))
    full = 0.9 * max((n for _, n in levels), default=0)
    inside = [i for i, (_, n) in enumerate(levels) if n >= full]
    if not inside or inside[-1] + 1 >= len(levels):
        return None
    start, end = levels[inside[0]][0], levels[inside[-1] + 1][0]
    return Window(start_s=start, end_s=end) if end > start else None


def tokens_within(record: RequestRecord, window: Window) -> float:
    """The record's tokens that arrived inside the window, later ones spread evenly from first to last."""
    tokens = record.completion_tokens or 0
    if record.first_s is None or record.last_s is None or not tokens:
        end = record.end_s
        return float(tokens) if end is not None and window.start_s <= end <= window.end_s else 0.0
    first = min(record.tokens_first_chunk or 1, tokens)
    head = first if window.start_s <= record.first_s <= window.end_s else 0
    span = record.last_s - record.first_s
    overlap = min(record.last_s, window.end_s) - max(record.first_s, window.start_s)
    share = max(0.0, overlap) / span if span > 0 else float(bool(head))
    return head + (tokens - first) * share
