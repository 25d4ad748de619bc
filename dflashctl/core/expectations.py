"""Expectations: a profile's published figures beside the measured ones, each with a verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.bench_counts import unjudgeable
from dflashctl.core.failures import cut_off, too_many
from dflashctl.core.stats import mean, mean_interval

if TYPE_CHECKING:
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_setting import Samples, Setting
    from dflashctl.core.profile import Expect, Figure, Sampling
    from dflashctl.core.stats import Interval

TOLERANCE = 0.02
ACCEPT_LENGTH = "accept_length"
_FEWEST_TURNS = 5  # fewer lie all on one side of the truth more often than 1 time in 16
_WIDEST = 0.10  # so wide that the smallest published sets (80 conversations) are judged when measured whole


class FigureVerdict(str, Enum):
    """`BELOW` and `ABOVE`: the whole interval lies outside the published value and its tolerance.

    An accept length of fewer than 5 turns is `UNJUDGED`, and so is one whose interval reaches the published value but is
    wider than 10 % of it to each side (or than the tolerance, where that is more): it would agree with a bad one, too.
    A rate never has an interval, so it is judged as the figure it is. Nothing is judged of a run in which too many requests
    failed, and no accept length that too many answers lack or that cannot be.
    """

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    UNLIKE = "unlike"
    UNMEASURED = "unmeasured"
    UNJUDGED = "unjudged"


_WITH_NOTE = frozenset({FigureVerdict.UNJUDGED, FigureVerdict.UNMEASURED})


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
        _judged(
            figure,
            replace(
                _measurement(figure, summary, setting, samples),
                spoiled=_spoiled(figure.metric, summary, setting, samples),
            ),
            unlike,
            tolerance,
        )
        for figure in expect.figures
        if _speaks_of(figure, setting)
    )


@dataclass(frozen=True, kw_only=True)
class _Measurement:
    value: float | None
    turns: int = 0
    interval: Interval | None = None
    unlike: str | None = None
    note: str | None = None
    spoiled: str | None = None


def _measurement(
    figure: Figure, summary: RunSummary, setting: Setting, samples: Samples | None
) -> _Measurement:
    """The run's value; where only the first turns were published, theirs, since later turns have other lengths."""
    whole = _measured(figure.metric, summary)
    turns = figure.turns
    if turns is None or setting.turns <= setting.prompts * turns:
        return whole
    if figure.metric != ACCEPT_LENGTH or samples is None:
        return replace(whole, unlike=f"all turns measured, published turns 1 to {turns}")
    first = first_turns(samples, turns)
    if not first:
        return _Measurement(value=None)
    return _Measurement(
        value=mean(first),
        turns=len(first),
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
    without = setting.speculation is False  # has no block size of its own
    same_block = figure.block_size is None or without or figure.block_size == setting.block_size
    same_load = figure.concurrency is None or figure.concurrency == setting.concurrency
    return figure.dataset == setting.dataset and same_block and same_load and not setting.plain


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
    if setting.speculation is False:
        told.append("the server does not speculate")
    return "; ".join(told) or None


def _judged(figure: Figure, found: _Measurement, unlike: str | None, tolerance: float) -> Expectation:
    why = "; ".join(reason for reason in (unlike, found.unlike) if reason) or None
    verdict = _verdict(figure, found, why, tolerance)
    unjudged = _unjudged(figure, found, tolerance) if verdict in _WITH_NOTE else None
    note = "; ".join(told for told in (found.note, unjudged) if told) or None
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
    if found.spoiled is not None:
        return FigureVerdict.UNJUDGED
    interval = found.interval
    if figure.metric == ACCEPT_LENGTH and (interval is None or found.turns < _FEWEST_TURNS):
        return FigureVerdict.UNJUDGED
    low, high = (interval.low, interval.high) if interval else (found.value, found.value)
    if high < figure.value * (1 - tolerance):
        return FigureVerdict.BELOW
    if low > figure.value * (1 + tolerance):
        return FigureVerdict.ABOVE
    wide = _half_width(figure, interval) > max(_WIDEST, tolerance)
    return FigureVerdict.UNJUDGED if wide else FigureVerdict.REPRODUCED


def _half_width(figure: Figure, interval: Interval | None) -> float:
    """How far the interval reaches to each side, as a share of the published value."""
    return (interval.high - interval.low) / 2 / figure.value if interval else 0.0


def _spoiled(metric: str, summary: RunSummary, setting: Setting, samples: Samples | None) -> str | None:
    """Why the run's own figure stands for nothing, None when it does."""
    broken = sum(cut_off(summary.finish_reasons).values())
    if too_many(summary.errors, summary.requests):
        return f"{summary.errors} of {summary.requests} requests failed"
    if too_many(broken, summary.requests - summary.errors):
        return f"{broken} of {summary.requests - summary.errors} answers were broken off"
    if metric != ACCEPT_LENGTH or setting.speculation is False:
        return None
    return unjudgeable(summary, samples)


def _unjudged(figure: Figure, found: _Measurement, tolerance: float) -> str | None:
    """Why there is no verdict, and what gives one."""
    if found.spoiled is not None:
        return f"not {'measured' if found.value is None else 'judged'}: {found.spoiled}"
    if found.value is None:
        return None
    interval = found.interval
    if interval is None or found.turns < _FEWEST_TURNS:
        return f"not judged: {found.turns} of the {_FEWEST_TURNS} turns that a verdict needs: raise --count"
    return (
        f"not judged: the interval [{interval.low:.2f}, {interval.high:.2f}] is ± {_half_width(figure, interval):.1%} of the "
        f"published figure, too wide for a verdict (± {max(_WIDEST, tolerance):.0%}): raise --count"
    )


def _measured(metric: str, summary: RunSummary) -> _Measurement:
    """The run's value for a published metric's name, with its interval; nothing for an unknown name.

    `request_tokens_per_s` is a published peak of single requests, so p99 stands beside it.
    """
    accept, rate = summary.accept_length, summary.per_request_tokens_per_s
    if metric == ACCEPT_LENGTH and accept is not None:
        return _Measurement(value=accept.mean, turns=accept.turns, interval=accept.mean_interval)
    if metric == "output_tokens_per_s":
        return _Measurement(value=summary.output_tokens_per_s)
    return _Measurement(value=rate.p99 if rate and metric == "request_tokens_per_s" else None)
