"""Expectations: a profile's published figures beside the measured ones, each with a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.profile import Expect, Figure, Sampling
    from dflashctl.core.stats import Interval

TOLERANCE = 0.02
ACCEPT_LENGTH = "accept_length"


class FigureVerdict(str, Enum):
    """`BELOW` and `ABOVE`: the whole interval lies outside the published value and its tolerance."""

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    UNLIKE = "unlike"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One published figure and its measurement; `why` says what makes the two unlike."""

    metric: str
    published: float
    measured: float | None
    interval: Interval | None
    verdict: FigureVerdict
    why: str | None = None

    @property
    def deviation(self) -> float | None:
        """Measured against published, as a share."""
        return None if self.measured is None else self.measured / self.published - 1


def expectations(
    expect: Expect, summary: RunSummary, setting: Setting, tolerance: float = TOLERANCE
) -> tuple[Expectation, ...]:
    """The figures that were published for this data set, block size and concurrency, judged."""
    unlike = _unlike(expect.sampling, setting)
    return tuple(
        _judged(figure, summary, unlike, tolerance)
        for figure in expect.figures
        if _speaks_of(figure, setting)
    )


def _speaks_of(figure: Figure, setting: Setting) -> bool:
    same_block = figure.block_size is None or figure.block_size == setting.block_size
    same_load = figure.concurrency is None or figure.concurrency == setting.concurrency
    return figure.dataset == setting.dataset and same_block and same_load and setting.speculation is not False


def _unlike(published: Sampling, setting: Setting) -> str | None:
    """What differs between the published setting and this one, None when nothing that matters does."""
    pairs = (
        ("temperature", published.temperature, setting.temperature),
        ("top_p", published.top_p, setting.top_p if setting.temperature else published.top_p),
        ("max_tokens", published.max_tokens, setting.max_tokens),
        ("thinking", published.thinking, setting.thinking),
    )
    told = [
        f"{name} {'server default' if mine is None else mine}, published {theirs}"
        for name, theirs, mine in pairs
        if theirs is not None and theirs != mine
    ]
    if setting.ignore_eos:
        told.append("ignore_eos")
    return "; ".join(told) or None


def _judged(figure: Figure, summary: RunSummary, unlike: str | None, tolerance: float) -> Expectation:
    measured, interval = _measured(figure.metric, summary)
    return Expectation(
        metric=figure.metric,
        published=figure.value,
        measured=measured,
        interval=interval,
        verdict=_verdict(figure.value, measured, interval, unlike, tolerance),
        why=unlike,
    )


def _verdict(
    published: float, measured: float | None, interval: Interval | None, unlike: str | None, tolerance: float
) -> FigureVerdict:
    if measured is None:
        return FigureVerdict.UNMEASURED
    if unlike is not None:
        return FigureVerdict.UNLIKE
    low, high = (interval.low, interval.high) if interval else (measured, measured)
    if high < published * (1 - tolerance):
        return FigureVerdict.BELOW
    return FigureVerdict.ABOVE if low > published * (1 + tolerance) else FigureVerdict.REPRODUCED


def _measured(metric: str, summary: RunSummary) -> tuple[float | None, Interval | None]:
    """The run's value for a published metric's name and its interval; (None, None) for an unknown name.

    `request_tokens_per_s` is a published peak of single requests, so p99 stands beside it.
    """
    accept, rate = summary.accept_length, summary.per_request_tokens_per_s
    if metric == ACCEPT_LENGTH:
        return (accept.mean, accept.mean_interval) if accept else (None, None)
    if metric == "output_tokens_per_s":
        return summary.output_tokens_per_s, None
    if metric == "request_tokens_per_s":
        return (rate.p99, None) if rate else (None, None)
    return None, None
