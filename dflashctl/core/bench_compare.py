"""Compare two result files, run by run, with bootstrap intervals, and refuse what cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from statistics import fmean, median
from typing import TYPE_CHECKING

from dflashctl.core.bench_likeness import conduct, differences
from dflashctl.core.bench_pairing import Match, left_over, paired, refusals
from dflashctl.core.bench_shared import FOR_CAPACITY, other_work, shared_notes, shared_turns
from dflashctl.core.failures import counted, too_many
from dflashctl.core.stats import Interval, bootstrap_rounds, percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflashctl.core.bench_setting import Samples
    from dflashctl.core.bench_shared import Positions
    from dflashctl.core.run_view import RunFile, RunView

_ROUNDS = 2000
_FEWEST = 2
_THROUGHPUT = "output_tokens_per_s"
_ACCEPT_LENGTH = "accept_length.mean"


class Change(str, Enum):
    """`WORSE` and `BETTER` only when the whole 95 % interval lies on one side of no change."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "no clear change"
    UNKNOWN = "no interval"


@dataclass(frozen=True, kw_only=True)
class MetricChange:
    """One figure in A and B; `relative` and its interval are shares (0.05 is 5 % more in B than in A)."""

    metric: str
    a: float
    b: float
    relative: float
    interval: Interval | None
    higher_is_better: bool
    change: Change

    @property
    def loss(self) -> float:
        """How much worse B is, as a share; negative when it is better."""
        return -self.relative if self.higher_is_better else self.relative


@dataclass(frozen=True, kw_only=True)
class Lack:
    """What run `side` ("A" or "B") does not have; `grave` when its other figures suffer from it too."""

    side: str
    reason: str
    grave: bool = True


@dataclass(frozen=True, kw_only=True)
class RunPair:
    """Two runs of the same setting; `refusals` say why they cannot be compared.

    `notes`: what else differs, and what each side was warned of.

    `lacks`: what one of the two does not have, so that nothing says whether B is worse there.
    """

    label: str
    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    changes: tuple[MetricChange, ...]
    paired: bool
    lacks: tuple[Lack, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """`only_a` and `only_b` are labels without a partner."""

    a: str
    b: str
    pairs: tuple[RunPair, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Metric:
    name: str
    pick: Callable[[Samples], tuple[float | None, ...]]
    summary: Callable[[Sequence[float]], float]
    higher_is_better: bool


def accept_lengths(samples: Samples) -> tuple[float | None, ...]:
    """Completion tokens / verify steps of each turn."""
    pairs = zip(samples.completion_tokens, samples.verify_steps, strict=True)
    return tuple(tokens / steps if tokens and steps else None for tokens, steps in pairs)


_METRICS = (
    _Metric(name=_ACCEPT_LENGTH, pick=accept_lengths, summary=fmean, higher_is_better=True),
    _Metric(
        name="per_request_tokens_per_s.p50",
        pick=lambda s: s.tokens_per_s,
        summary=median,
        higher_is_better=True,
    ),
    _Metric(name="ttft_ms.p50", pick=lambda s: s.ttft_ms, summary=median, higher_is_better=False),
    _Metric(name="tpot_ms.p50", pick=lambda s: s.tpot_ms, summary=median, higher_is_better=False),
    _Metric(name="e2e_ms.p50", pick=lambda s: s.e2e_ms, summary=median, higher_is_better=False),
)


def compare(a: RunFile, b: RunFile, *, allow_unlike: bool = False, seed: int = 0) -> Comparison:
    """Every run of A beside the run of B with the same data set, block size and load; of several the newest that fit.

    When neither file has several of one kind, block size and speculation may differ: then they are what is compared.
    """
    found = paired(a, b)
    return Comparison(
        a=a.name,
        b=b.name,
        pairs=tuple(_pair(a, b, match, allow_unlike=allow_unlike, seed=seed) for match in found),
        only_a=left_over(a.runs, (match.one for match in found)),
        only_b=left_over(b.runs, (match.other for match in found)),
    )


def _pair(a: RunFile, b: RunFile, match: Match, *, allow_unlike: bool, seed: int) -> RunPair:
    one, other = match.one, match.other
    refused = refusals(a, one, b, other)
    shared, shown = shared_turns(one, other), _only_shown(one, other)
    changes: tuple[MetricChange, ...] = ()
    if not refused or allow_unlike:
        found = (
            _change(
                metric, one.samples, other.samples, shared=shared, judged=metric.name not in shown, seed=seed
            )
            for metric in _METRICS
        )
        changes = tuple(change for change in (*found, _throughput(one, other)) if change is not None)
    label = one.label if one.label == other.label else f"{one.label} → {other.label}"
    notes = (
        *match.notes,
        *shared_notes(one, other, shared),
        *(
            (f"{_THROUGHPUT} is left out: in an unfinished run it is of other turns",)
            if other_work(one, other)
            else ()
        ),
        *(
            f"{name} is not judged: {one.setting.dataset} is for capacity, its texts made anew"
            for name in shown
        ),
        *conduct(one, other),
        *differences(a.provenance(one), b.provenance(other)),
    )
    return RunPair(
        label=label,
        refusals=refused,
        notes=notes,
        changes=changes,
        paired=bool(shared),
        lacks=_lacks(one, other),
    )


def _only_shown(one: RunView, other: RunView) -> tuple[str, ...]:
    """Figures that say nothing of the server in these runs: they have no interval and are missed nowhere."""
    return (_ACCEPT_LENGTH,) if {one.setting.dataset, other.setting.dataset} & FOR_CAPACITY else ()


def _lacks(one: RunView, other: RunView) -> tuple[Lack, ...]:
    """Requests that failed on either side, figures that one side alone has, and those that both withhold."""
    failed = tuple(
        Lack(
            side=side,
            reason=f"{run.errors} of {run.requests} requests failed{_kinds(run)}",
            grave=too_many(run.errors, run.requests),
        )
        for side, run in (("A", one), ("B", other))
        if run.errors
    )
    shown = _only_shown(one, other)
    mine, theirs = ([m for m in _measured(run) if m not in shown] for run in (one, other))
    absent = (
        ("A", one, [m for m in theirs if m not in mine]),
        ("B", other, [m for m in mine if m not in theirs]),
    )
    return (
        *failed,
        *(Lack(side=s, reason=f"no {', '.join(names)}{_why(run)}") for s, run, names in absent if names),
        *(
            Lack(side=side, reason=f"latencies and rates withheld: {run.withheld[0]}", grave=False)
            for side, run in (("A", one), ("B", other))
            if one.withheld and other.withheld  # else one of them has figures that the other lacks
        ),
    )


def _measured(run: RunView) -> list[str]:
    sampled = [m.name for m in _METRICS if any(value is not None for value in m.pick(run.samples))]
    return [*sampled, *((_THROUGHPUT,) if run.output_tokens_per_s else ())]


def _kinds(run: RunView) -> str:
    told = run.errors_told or run.errors_by_kind
    return f" ({counted(told)})" if told else ""


def _why(run: RunView) -> str:
    if run.withheld:
        return f": latencies and rates withheld: {run.withheld[0]}"
    return ": every request failed" if run.errors == run.requests else ""


def _change(
    metric: _Metric, one: Samples, other: Samples, *, shared: Positions, judged: bool, seed: int
) -> MetricChange | None:
    """Of the shared turns alone where there are some: a turn without this figure on one side is left out on both.

    Without an interval when it is not to be `judged`.
    """
    mine, theirs = metric.pick(one), metric.pick(other)
    if shared:
        pairs = ((mine[i], theirs[k]) for i, k in shared)
        both = [(x, y) for x, y in pairs if x is not None and y is not None]
        left, right = [x for x, _ in both], [y for _, y in both]
    else:
        left, right = [x for x in mine if x is not None], [y for y in theirs if y is not None]
    if not left or not right:
        return None
    a, b = metric.summary(left), metric.summary(right)
    if not a:
        return None
    interval = _interval(metric.summary, left, right, paired=bool(shared), seed=seed) if judged else None
    return _told(metric.name, a, b, interval, higher_is_better=metric.higher_is_better)


def _throughput(one: RunView, other: RunView) -> MetricChange | None:
    """One figure a run has no interval: it is shown, and judges nothing."""
    a, b = one.output_tokens_per_s, other.output_tokens_per_s
    if not a or not b or other_work(one, other):
        return None
    return _told(_THROUGHPUT, a, b, None, higher_is_better=True)


def _told(
    name: str, a: float, b: float, interval: Interval | None, *, higher_is_better: bool
) -> MetricChange:
    return MetricChange(
        metric=name,
        a=a,
        b=b,
        relative=b / a - 1,
        interval=interval,
        higher_is_better=higher_is_better,
        change=_direction(interval, higher_is_better=higher_is_better),
    )


def _direction(interval: Interval | None, *, higher_is_better: bool) -> Change:
    if interval is None:
        return Change.UNKNOWN
    if interval.low <= 0 <= interval.high:
        return Change.SAME
    return Change.BETTER if (interval.low > 0) == higher_is_better else Change.WORSE


def _interval(
    summary: Callable[[Sequence[float]], float],
    left: list[float],
    right: list[float],
    *,
    paired: bool,
    seed: int,
) -> Interval | None:
    """The percentile bootstrap of summary(B) / summary(A) - 1; the same prompts are drawn on both sides if paired."""
    if min(len(left), len(right)) < _FEWEST:
        return None
    random = Random(seed)  # noqa: S311 - a repeatable draw is the point
    ratios = []
    for _ in range(bootstrap_rounds(max(len(left), len(right)), _ROUNDS)):
        picks = random.choices(range(len(left)), k=len(left))
        others = picks if paired else random.choices(range(len(right)), k=len(right))
        base = summary([left[i] for i in picks])
        if base:
            ratios.append(summary([right[i] for i in others]) / base - 1)
    ratios.sort()
    return Interval(low=percentile(ratios, 0.025), high=percentile(ratios, 0.975)) if ratios else None
