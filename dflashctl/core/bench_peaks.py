"""The peaks of a run, from its records: most requests at once, most tokens in one second."""

from __future__ import annotations

from collections import defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dflashctl.core.bench_record import RequestRecord


def most_at_once(records: Iterable[RequestRecord]) -> int | None:
    """How many finished requests were under way together at most; None when none was finished."""
    turns = sorted(
        turn
        for r in records
        if r.ok and r.sent_s is not None and r.end_s is not None
        for turn in ((r.sent_s, 1), (r.end_s, -1))
    )  # at the same moment one ends before the next begins, as -1 sorts first
    return max(accumulate(step for _, step in turns), default=None)


def most_tokens_in_a_second(records: Iterable[RequestRecord]) -> float | None:
    """Tokens of finished requests in the fullest second, counted in whole seconds since the first was sent.

    A token's time is its chunk's; where the server does not count by chunk, each chunk has an equal share.
    """
    done = [r for r in records if r.ok and r.sent_s is not None]
    begun_s = min((r.sent_s for r in done if r.sent_s is not None), default=0.0)
    seconds: defaultdict[int, float] = defaultdict(float)
    for at_s, tokens in (chunk for record in done for chunk in _chunks(record)):
        seconds[int(at_s - begun_s)] += tokens
    return max(seconds.values(), default=None)


def _chunks(record: RequestRecord) -> Iterator[tuple[float, float]]:
    """(time, tokens) of each content chunk."""
    if record.first_s is None or not record.completion_tokens:
        return
    times = accumulate(record.gaps_s, initial=record.first_s)
    count = len(record.gaps_s) + 1
    if len(record.chunk_tokens) == count:
        yield from zip(times, record.chunk_tokens, strict=True)
        return
    share = record.completion_tokens / count
    yield from ((at_s, share) for at_s in times)
