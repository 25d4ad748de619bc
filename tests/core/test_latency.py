"""The rate of one request: tokens that came after the first chunk, over the time in which they came."""

from __future__ import annotations

import pytest

from dflashctl.core import latency
from dflashctl.core.bench_record import RequestRecord


def answer(
    chunk_tokens: tuple[int, ...], *, tokens: int, chunks: int, first: int | None = None
) -> RequestRecord:
    """Two seconds from the first chunk to the last."""
    return RequestRecord(
        id="a",
        intended_s=0.0,
        sent_s=0.0,
        first_s=1.0,
        last_s=3.0,
        end_s=3.0,
        completion_tokens=tokens,
        tokens_first_chunk=first,
        chunks=chunks,
        chunk_tokens=chunk_tokens,
    )


@pytest.mark.parametrize(
    ("record", "rate"),
    [
        # the end-of-sequence token is counted but comes in no chunk
        (answer((1,) * 52, tokens=53, chunks=52, first=1), 51 / 2),
        (answer((1, 8, 8, 4), tokens=22, chunks=4, first=1), 20 / 2),
        # it ends a verify step whose other tokens do come
        (answer((1, 8, 8, 4), tokens=21, chunks=4, first=1), 20 / 2),
        (answer((8, 6, 7), tokens=21, chunks=3, first=8), 13 / 2),
        # without a count by chunk, or with one of some chunks only, the server's total has to do
        (answer((), tokens=53, chunks=52), 52 / 2),
        (answer((1, 1), tokens=53, chunks=52, first=1), 52 / 2),
        (answer((5,), tokens=5, chunks=1, first=5), None),
        (answer((5, 0), tokens=5, chunks=2, first=5), None),
    ],
)
def test_the_decode_rate_counts_what_came_after_the_first_chunk(record, rate):
    assert latency.decode_tokens_per_s(record) == (None if rate is None else pytest.approx(rate))


def test_tpot_divides_by_all_tokens_but_one():
    assert latency.tpot_s(answer((1,) * 52, tokens=53, chunks=52, first=1)) == pytest.approx(2 / 52)
