"""The speed-up of a run beside the one without speculation: over the same turns, or none."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from dflashctl.core.bench_runs import BenchRun, Speedup

if TYPE_CHECKING:
    from collections.abc import Mapping

_FEWEST = 2


def speedup_of(run: BenchRun, base: BenchRun) -> Speedup | None:
    """None where neither ratio is known, as when one side's rates are withheld.

    When the two did not finish the same turns (one was cut short, or requests failed), the rate of one request is
    that of the turns which both finished, and the rates of all requests are not comparable.
    """
    mine, theirs = _rates(run), _rates(base)
    rate, plain = run.summary.per_request_tokens_per_s, base.summary.per_request_tokens_per_s
    if not (rate and plain and plain.p50):
        per_request = None
    elif mine.keys() == theirs.keys():
        per_request = rate.p50 / plain.p50
    else:
        per_request = _shared(mine, theirs)
    total, plain_total = run.summary.output_tokens_per_s, base.summary.output_tokens_per_s
    alike = _done(run) == _done(base)
    aggregate = total / plain_total if total and plain_total and alike else None
    if per_request is None and aggregate is None:
        return None
    return Speedup(
        per_request=per_request,
        aggregate=aggregate,
        shared_turns=None if alike else len(mine.keys() & theirs.keys()),
    )


def _shared(mine: Mapping[str, float], theirs: Mapping[str, float]) -> float | None:
    both = mine.keys() & theirs.keys()
    if len(both) < _FEWEST:
        return None
    plain = median(theirs[turn] for turn in both)
    return median(mine[turn] for turn in both) / plain if plain else None


def _rates(run: BenchRun) -> dict[str, float]:
    """Tokens a second by turn, of those that have a rate."""
    rates = zip(run.samples.ids, run.samples.tokens_per_s, strict=True)
    return {turn: rate for turn, rate in rates if rate is not None}


def _done(run: BenchRun) -> frozenset[str]:
    tokens = zip(run.samples.ids, run.samples.completion_tokens, strict=True)
    return frozenset(turn for turn, count in tokens if count is not None)
