"""Percentiles of weighted samples are those of the samples written out one by one, to the last bit."""

from __future__ import annotations

from array import array
from random import Random

import pytest

from dflashctl.core import stats
from dflashctl.core.bench_record import RequestRecord
from dflashctl.core.bench_result import gaps_of, summarise
from dflashctl.core.weighted_samples import WeightedSamples


def single(value, gap):
    """As a load process hands it over: in 4 bytes."""
    return array("f", [value * gap])[0]


DRAW = Random(7)  # noqa: S311 - the same samples every time
ROUGH = [single(DRAW.expovariate(1), 0.01) for _ in range(40_000)]
LISTS = {
    "one": [(0.25, 1)],
    "one that counts often": [(0.25, 9)],
    "two": [(0.5, 1), (0.25, 1)],
    "all equal": [(0.125, 3)] * 50,
    "zeros": [(0.0, 1)] * 99 + [(0.01, 1)],
    "zeros of both signs": [(-0.0, 2), (0.0, 2), (1e-9, 1)],
    "below zero": [(-3.5, 2), (-1e-300, 1), (2.0, 4)],
    "far apart": [(5e-324, 3), (1e300, 2), (1.0, 1)],
    "more than a block": [(gap, 1) for gap in ROUGH],
    "more than a block, divided": [(gap / (n % 16 + 1), n % 16 + 1) for n, gap in enumerate(ROUGH)],
    "weights that are all different": [(gap, n + 1) for n, gap in enumerate(ROUGH[:300])],
}


@pytest.mark.parametrize("pairs", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_distribution_is_that_of_the_samples_written_out(pairs, scale):
    found = WeightedSamples()
    for sample, times in pairs:
        found.add(sample, times)
    written_out = [sample for sample, times in pairs for _ in range(times)]
    assert found.distribution(scale=scale) == stats.distribution(written_out, scale=scale)
    assert len(found) == len(written_out)


@pytest.mark.parametrize("pairs", LISTS.values(), ids=LISTS)
def test_every_rank_is_a_sample(pairs):
    found = WeightedSamples()
    found.add_all(sample for sample, _ in pairs)
    ordered = sorted(sample for sample, _ in pairs)
    for rank in {0, 1, len(ordered) // 3, len(ordered) // 2, len(ordered) - 1} & set(range(len(ordered))):
        assert found.ranked(rank) == ordered[rank]
    for rank in (-1, len(ordered)):
        with pytest.raises(IndexError):
            found.ranked(rank)


def test_no_samples_have_no_distribution():
    assert WeightedSamples().distribution() is None
    assert not WeightedSamples()


def itl_written_out(record):
    """The definition: one sample for each token after the first chunk."""
    gaps = record.gaps_s
    if not gaps:
        return []
    if record.completion_tokens == record.chunks:
        return list(gaps)
    if len(record.chunk_tokens) == len(gaps) + 1:
        later = zip(gaps, record.chunk_tokens[1:], strict=True)
        return [gap / tokens for gap, tokens in later if tokens > 0 for _ in range(tokens)]
    tokens = (record.completion_tokens or record.chunks) - (record.tokens_first_chunk or 1)
    share = tokens / len(gaps)
    return [gap / share for gap in gaps] if share > 0 else []


def answer(gaps, tokens, *, total=None, first=None):
    return RequestRecord(
        id="r",
        intended_s=0.0,
        sent_s=0.0,
        first_s=0.1,
        last_s=1.0,
        end_s=1.0,
        completion_tokens=sum(tokens) if total is None else total,
        tokens_first_chunk=tokens[0] if tokens else first,
        chunks=len(gaps) + 1,
        gaps_s=array("f", gaps),
        chunk_tokens=array("I", tokens),
    )


RUNS = {
    "a token a chunk": [answer(ROUGH[:500], [1] * 501)],
    "several tokens a chunk": [answer(ROUGH[:500], DRAW.choices(range(1, 17), k=501)) for _ in range(40)],
    "chunks without a token": [answer(ROUGH[:50], [5, *([0, 3] * 25)])],
    "no count by chunk": [answer(ROUGH[:50], [], total=200)],
    "no count at all": [answer(ROUGH[:50], [], total=0)],
    "fewer tokens than chunks": [answer(ROUGH[:50], [], total=1)],
    "one chunk": [answer([], [7])],
    "all of these": [
        answer(ROUGH[:90], [1] * 91),
        answer(ROUGH[90:120], [4] * 31),
        answer(ROUGH[120:150], [], total=99, first=4),
        answer([], [7]),
    ],
}


@pytest.mark.parametrize("records", RUNS.values(), ids=RUNS)
def test_the_gaps_of_a_run_are_those_of_the_definitions(records):
    found = summarise(records, None)
    assert found.itl_ms == stats.distribution([s for r in records for s in itl_written_out(r)], scale=1e3)
    gaps = [gap for r in records for gap in r.gaps_s]
    assert found.icl_ms == stats.distribution(gaps, scale=1e3)
    assert len(gaps_of(records)) == len(gaps)
