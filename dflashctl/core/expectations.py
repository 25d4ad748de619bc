"""Expectations: a profile's published figures beside the measured ones, each with a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.stats import mean, mean_interval

if TYPE_CHECKING:
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_setting import Samples, Setting
    from dflashctl.core.profile import Expect, Figure, Sampling
    from dflashctl.core.stats import Interval

TOLERANCE = 0.02
ACCEPT_LENGTH = "accept_length"


class FigureVerdict(str, Enum):
    """`BELOW` and `ABOVE`: the whole interval lies outside the published value and its tolerance.

    An accept length without an interval is `UNJUDGED`; a rate never has one, so it is judged as the figure it is.
    """

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    UNLIKE = "unlike"
    UNMEASURED = "unmeasured"
    UNJUDGED = "unjudged"


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """One published figure and its measurement; `why` says what makes the two unlike, `note` what was judged."""

    metric: str
    published: float
    measured: float | None
    interval: Interval | None
    verdict: FigureVerdict
    why: str | None = None
    note: str | None = None

    @property
    def deviation(self) -> float | None:
        """Measured against published, as a share."""
        return None if self.measured is None else self.measured / self.published - 1


def expectations(
    expect: Expect,
    summary: RunSummary,
    setting: Setting,
    tolerance: float = TOLERANCE,
    samples: Samples | None = None,
) -> tuple[Expectation, ...]:
    """The figures that were published for this data set, block size and concurrency, judged.

    `samples` let a figure of the first turns alone be judged by those turns.
    """
    unlike = _unlike(expect.sampling, setting)
    return tuple(
        _judged(figure, _measurement(figure, summary, setting, samples), unlike, tolerance)
        for figure in expect.figures
        if _speaks_of(figure, setting)
    )


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    value: float | None
    interval: Interval | None = None
    unlike: str | None = None
    note: str | None = None


def _measurement(
    figure: Figure, summary: RunSummary, setting: Setting, samples: Samples | None
) -> _Measurement:
    """The run's value; where only the first turns were published, theirs, since later turns have other lengths."""
    value, interval = _measured(figure.metric, summary)
    turns = figure.turns
    if turns is None or setting.turns <= setting.prompts * turns:
        return _Measurement(value=value, interval=interval)
    if figure.metric != ACCEPT_LENGTH or samples is None:
        return _Measurement(
            value=value, interval=interval, unlike=f"all turns measured, published turns 1 to {turns}"
        )
    first = first_turns(samples, turns)
    if not first:
        return _Measurement(value=None)
    return _Measurement(
        value=mean(first),
        interval=mean_interval(first, seed=setting.seed),
        note=f"{mean(first):.3f} over turns 1 to {turns} alone, as published",
    )


def first_turns(samples: Samples, turns: int) -> list[float]:
    """The accept lengths of turns 1 to `turns`; the ids of a conversation's turns end in #1, #2 and so on."""
    found = zip(samples.ids, samples.completion_tokens, samples.verify_steps, strict=True)
    return [tokens / steps for name, tokens, steps in found if tokens and steps and _turn(name) <= turns]


def _turn(name: str) -> int:
    number = name.rpartition("#")[2] if "#" in name else ""
    return int(number) if number.isdecimal() else 1


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
    told += setting.prompts_unlike
    return "; ".join(told) or None


def _judged(figure: Figure, found: _Measurement, unlike: str | None, tolerance: float) -> Expectation:
    why = "; ".join(reason for reason in (unlike, found.unlike) if reason) or None
    verdict = _verdict(figure, found, why, tolerance)
    note = "not judged: one turn has no interval" if verdict is FigureVerdict.UNJUDGED else found.note
    return Expectation(
        metric=figure.metric,
        published=figure.value,
        measured=found.value,
        interval=found.interval,
        verdict=verdict,
        why=why,
        note=note,
    )


def _verdict(figure: Figure, found: _Measurement, unlike: str | None, tolerance: float) -> FigureVerdict:
    if found.value is None:
        return FigureVerdict.UNMEASURED
    if unlike is not None:
        return FigureVerdict.UNLIKE
    if found.interval is None and figure.metric == ACCEPT_LENGTH:
        return FigureVerdict.UNJUDGED
    interval = found.interval
    low, high = (interval.low, interval.high) if interval else (found.value, found.value)
    if high < figure.value * (1 - tolerance):
        return FigureVerdict.BELOW
    return FigureVerdict.ABOVE if low > figure.value * (1 + tolerance) else FigureVerdict.REPRODUCED


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
