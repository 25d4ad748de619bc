"""When requests are sent in an open loop."""

from __future__ import annotations

from random import Random


def poisson_times(count: int, rate: float, seed: int) -> list[float]:
    """`count` send times in seconds from the start, gaps drawn from an exponential of mean 1 / rate.

    The first one is at 0, as in SGLang's bench_serving. Equal seeds give equal times.
    """
    random = Random(seed)  # noqa: S311 - a repeatable plan is the point
    times, at = [], 0.0
    for _ in range(count):
        times.append(at)
        at += random.expovariate(rate)
    return times
