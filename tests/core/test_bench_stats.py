"""Percentiles and intervals against values worked out by hand and against known coverage."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dflashctl.core import stats

DRAW = random.Random


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_percentile_is_numpys_linear(share):
    samples = sorted(DRAW(1).uniform(0, 9) for _ in range(37))
    assert stats.percentile(samples, share) == pytest.approx(np.percentile(samples, share * 100))


def test_distribution():
    found = stats.distribution([4.0, 1.0, 2.0, 3.0], scale=10)
    assert (found.mean, found.p50) == (25.0, 25.0)
    assert found.p99 == pytest.approx(39.7)
    assert stats.distribution([]) is None


def test_no_samples_are_refused():
    for call in (stats.mean, lambda s: stats.percentile(s, 0.5)):
        with pytest.raises(ValueError, match="no samples"):
            call([])


def test_intervals_need_two_samples():
    assert stats.mean_interval([1.0]) is None
    assert stats.percentile_interval([1.0], 0.5) is None
    assert stats.normal_interval([1.0]) is None
    assert stats.ratio_interval([1.0], [2.0]) is None


MAKERS = {
    "bootstrap": (stats.mean_interval, lambda r: r.gauss(5, 2), 5.0),
    "normal": (stats.normal_interval, lambda r: r.gauss(5, 2), 5.0),
    "median": (lambda s: stats.percentile_interval(s, 0.5), lambda r: r.expovariate(1), 0.6931),
    "p90": (lambda s: stats.percentile_interval(s, 0.9), lambda r: r.expovariate(1), 2.3026),
}


@pytest.mark.parametrize("name", MAKERS)
def test_intervals_cover_the_true_value_about_19_times_in_20(name):
    make, draw, true = MAKERS[name]
    random_ = DRAW(5)
    hits = 0
    for _ in range(200):
        interval = make([draw(random_) for _ in range(80)])
        hits += interval.low <= true <= interval.high
    assert 178 <= hits <= 200


def test_the_bootstrap_is_repeatable_and_keeps_pairs():
    tokens, steps = [10, 80, 33, 4], [2, 10, 5, 1]

    def pooled(picks):
        return sum(tokens[i] for i in picks) / sum(steps[i] for i in picks)

    (first,) = stats.bootstraps(4, [pooled], seed=3)
    assert (first,) * 2 == stats.bootstraps(4, [pooled, pooled], seed=3)
    assert 4 <= first.low < sum(tokens) / sum(steps) < first.high <= 8


def test_of_many_samples_the_central_limit_theorem_says_what_a_bootstrap_would():
    random_ = DRAW(7)
    steps = [random_.randint(3, 40) for _ in range(stats.BOOTSTRAPPED)]
    tokens = [v * random_.randint(2, 9) + random_.randint(0, 6) for v in steps]
    ratios = [c / v for c, v in zip(tokens, steps, strict=True)]

    def pooled(picks):
        return sum(tokens[i] for i in picks) / sum(steps[i] for i in picks)

    drawn = stats.bootstraps(len(steps), [stats.mean_of(ratios), pooled], seed=1)
    computed = (stats.normal_interval(ratios), stats.ratio_interval(tokens, steps))
    for first, second in zip(drawn, computed, strict=True):
        assert second.low == pytest.approx(first.low, abs=0.15 * (first.high - first.low))
        assert second.high == pytest.approx(first.high, abs=0.15 * (first.high - first.low))
    assert stats.mean_interval([*ratios, 5.0]) == stats.normal_interval([*ratios, 5.0])


@pytest.mark.parametrize(
    ("count", "rounds"), [(2, 2000), (250, 2000), (1000, 500), (2500, 200), (1000000, 200)]
)
def test_a_bootstrap_of_many_samples_takes_fewer_rounds(count, rounds):
    assert stats.bootstrap_rounds(count, 2000) == rounds
