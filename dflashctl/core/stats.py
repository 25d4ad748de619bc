"""Percentiles, means and intervals of samples; nothing about benchmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHARES = (0.50, 0.90, 0.95, 0.99)  # what a Distribution has, in its order
_Z95 = 1.959964
_PICKS = 500_000  # what one bootstrap may cost; big samples get by with fewer rounds
_FEWEST_ROUNDS = 200
BOOTSTRAPPED = (
    _PICKS // _FEWEST_ROUNDS
)  # samples; of more, so few rounds say less than the central limit theorem


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval of `level` (0.95 = 95 %)."""

    low: float
    high: float
    level: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """What is printed of a latency; every member in the unit of the samples."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` (0..1) of the sorted samples lie, by linear interpolation.

    The same rule as numpy's default ("linear"): rank = share * (n - 1). ValueError for no samples.
    """
    return percentile_of(ordered.__getitem__, len(ordered), share)


def percentile_of(ranked: Callable[[int], float], count: int, share: float) -> float:
    """As `percentile` of `count` samples, of which `ranked` gives the one at a rank (from 0)."""
    if not count:
        raise ValueError("no samples")
    rank = share * (count - 1)
    below = math.floor(rank)
    low, high = ranked(below), ranked(min(below + 1, count - 1))
    return low + (high - low) * (rank - below)


def mean(samples: Sequence[float]) -> float:
    """The arithmetic mean; ValueError for no samples."""
    if not samples:
        raise ValueError("no samples")
    return math.fsum(samples) / len(samples)


def distribution(samples: Sequence[float], *, scale: float = 1.0) -> Distribution | None:
    """Mean and percentiles of the samples times `scale`; None for no samples."""
    if not samples:
        return None
    ordered = sorted(samples)
    p50, p90, p95, p99 = (percentile(ordered, share) * scale for share in SHARES)
    return Distribution(mean=mean(ordered) * scale, p50=p50, p90=p90, p95=p95, p99=p99)


def bootstraps(
    count: int,
    statistics: Sequence[Callable[[Sequence[int]], float]],
    *,
    rounds: int = 2000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Interval | None, ...]:
    """The percentile bootstrap intervals of `statistics`, each of which gets `count` drawn indices (with repeats).

    Requests are the unit drawn, so ratios of sums keep their pairs together. None below two samples.
    """
    if count < 2:  # noqa: PLR2004
        return (None,) * len(statistics)
    random = Random(seed)  # noqa: S311 - a repeatable draw is the point
    population = range(count)
    rounds = bootstrap_rounds(count, rounds)
    values: list[list[float]] = [[] for _ in statistics]
    for _ in range(rounds):
        picks = random.choices(population, k=count)  # most of the time goes into these
        for found, statistic in zip(values, statistics, strict=True):
            found.append(statistic(picks))
    tail = (1 - level) / 2
    return tuple(
        Interval(low=percentile(ordered, tail), high=percentile(ordered, 1 - tail), level=level)
        for ordered in map(sorted, values)
    )


def bootstrap_rounds(count: int, wanted: int) -> int:
    """How many rounds a bootstrap of `count` samples gets: `wanted` of few, 200 of very many."""
    return max(_FEWEST_ROUNDS, min(wanted, _PICKS // count))


def mean_interval(samples: Sequence[float], *, level: float = 0.95, seed: int = 0) -> Interval | None:
    """The bootstrap interval of the mean; of more than BOOTSTRAPPED samples the normal one."""
    if len(samples) > BOOTSTRAPPED:
        return normal_interval(samples)
    return bootstraps(len(samples), [mean_of(samples)], level=level, seed=seed)[0]


def mean_of(samples: Sequence[float]) -> Callable[[Sequence[int]], float]:
    """The mean of those samples that are drawn."""
    return lambda picks: sum(map(samples.__getitem__, picks)) / len(picks)


def normal_interval(samples: Sequence[float]) -> Interval | None:
    """The 95 % interval of the mean by the central limit theorem, for latencies; None below two samples."""
    count = len(samples)
    if count < 2:  # noqa: PLR2004
        return None
    middle = mean(samples)
    half = _Z95 * math.sqrt(math.fsum((s - middle) ** 2 for s in samples) / (count - 1) / count)
    return Interval(low=middle - half, high=middle + half)


def ratio_interval(above: Sequence[float], below: Sequence[float]) -> Interval | None:
    """The 95 % interval of sum(above) / sum(below), drawn in pairs, by the central limit theorem.

    Linearised: Cochran, Sampling Techniques, 6.4, for a large population. None below two pairs.
    """
    count = len(above)
    if count < 2:  # noqa: PLR2004
        return None
    total = math.fsum(below)
    ratio = math.fsum(above) / total
    squares = math.fsum((a - ratio * b) ** 2 for a, b in zip(above, below, strict=True))
    half = _Z95 * math.sqrt(squares * count / (count - 1)) / total
    return Interval(low=ratio - half, high=ratio + half)


def percentile_interval(samples: Sequence[float], share: float) -> Interval | None:
    """The 95 % interval of a percentile from order statistics (binomial, normal approximation).

    Conover, Practical Nonparametric Statistics, 3.2. None below two samples; the ends are samples, so that
    a tail percentile of few samples honestly reaches to the largest one.
    """
    count = len(samples)
    if count < 2:  # noqa: PLR2004
        return None
    ordered = sorted(samples)
    spread = _Z95 * math.sqrt(count * share * (1 - share))
    low = max(0, math.ceil(count * share - spread) - 1)
    high = min(count - 1, math.ceil(count * share + spread) - 1)
    return Interval(low=ordered[min(low, high)], high=ordered[high])
