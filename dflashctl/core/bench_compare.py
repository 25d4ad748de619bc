"""Compare two result files, run by run, with bootstrap intervals, and refuse what cannot be compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from statistics import fmean, median
from typing import TYPE_CHECKING

from dflashctl.core.stats import Interval, percentile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflashctl.core.bench_setting import Provenance, Samples, Setting
    from dflashctl.core.run_view import RunFile, RunView

_ROUNDS = 2000
_FEWEST = 2


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
class RunPair:
    """Two runs of the same setting; `refusals` say why they cannot be compared, `notes` what else differs."""

    label: str
    refusals: tuple[str, ...]
    notes: tuple[str, ...]
    changes: tuple[MetricChange, ...]
    paired: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """`only_a` and `only_b` are labels of runs without a partner."""

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
    _Metric(name="accept_length.mean", pick=accept_lengths, summary=fmean, higher_is_better=True),
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
    """Every run of A beside the run of B with the same data set, block size and load.

    When neither file has several of one kind, block size and speculation may differ: then they are what is compared.
    """
    pairs, left = [], list(b.runs)
    alone = []
    for run in a.runs:
        partner = _partner(run, left)
        if partner is None:
            alone.append(run.label)
            continue
        left.remove(partner)
        pairs.append(_pair(a, run, b, partner, allow_unlike=allow_unlike, seed=seed))
    return Comparison(
        a=a.name, b=b.name, pairs=tuple(pairs), only_a=tuple(alone), only_b=tuple(run.label for run in left)
    )


def _partner(run: RunView, others: list[RunView]) -> RunView | None:
    """The same label first; else the only one with the same data set and load."""
    same = [other for other in others if other.label == run.label]
    if same:
        return same[0]
    near = [other for other in others if _load(other.setting) == _load(run.setting)]
    return near[0] if len(near) == 1 else None


def _load(setting: Setting) -> tuple[object, ...]:
    return (setting.dataset, setting.concurrency, setting.request_rate)


def _pair(a: RunFile, one: RunView, b: RunFile, other: RunView, *, allow_unlike: bool, seed: int) -> RunPair:
    refusals = unlike(one.setting, other.setting) + _unlike_models(a.provenance(one), b.provenance(other))
    paired = one.samples.ids == other.samples.ids
    changes: tuple[MetricChange, ...] = ()
    if not refusals or allow_unlike:
        found = (_change(metric, one.samples, other.samples, paired=paired, seed=seed) for metric in _METRICS)
        changes = tuple(change for change in (*found, _throughput(one, other)) if change is not None)
    label = one.label if one.label == other.label else f"{one.label} → {other.label}"
    notes = _differences(a.provenance(one), b.provenance(other))
    return RunPair(label=label, refusals=refusals, notes=notes, changes=changes, paired=paired)


def unlike(one: Setting, other: Setting) -> tuple[str, ...]:
    """What forbids a comparison: other prompts, sampling, lengths, thinking, interface or cache state."""
    names = (
        "prompts_hash",
        "max_tokens",
        "temperature",
        "top_p",
        "thinking",
        "ignore_eos",
        "api",
        "cache_flushed",
    )
    pairs = ((name, getattr(one, name), getattr(other, name)) for name in names)
    return tuple(
        f"{name.replace('_', ' ')}: {mine!r} and {theirs!r}" for name, mine, theirs in pairs if mine != theirs
    )


def _unlike_models(one: Provenance | None, other: Provenance | None) -> tuple[str, ...]:
    """Another target, or a target at another commit; a path and a repository of the same server are told apart."""
    if one is None or other is None:
        return ()
    if one.target.revision and other.target.revision and one.target.revision != other.target.revision:
        return (f"target commit: {one.target.revision} and {other.target.revision}",)
    if one.target.name and other.target.name and one.target.name != other.target.name:
        return (f"target: {one.target.name!r} and {other.target.name!r}",)
    return ()


def _differences(one: Provenance | None, other: Provenance | None) -> tuple[str, ...]:
    """What may explain a change, and so is often the very thing that is compared."""
    if one is None or other is None:
        return ("the provenance of one side is missing",)
    told = (
        ("engine", f"{one.engine} {one.engine_version}", f"{other.engine} {other.engine_version}"),
        ("draft", one.draft.revision or one.draft.name, other.draft.revision or other.draft.name),
        ("block size", one.block_size, other.block_size),
        ("GPUs", [g.name for g in one.gpus], [g.name for g in other.gpus]),
        ("driver", one.driver, other.driver),
        ("chat template", one.template_hash, other.template_hash),
        ("dflashctl", one.dflashctl_version, other.dflashctl_version),
    )
    notes = [f"{name}: {mine} and {theirs}" for name, mine, theirs in told if mine != theirs]
    notes += _flag_differences(dict(one.flags), dict(other.flags))
    return tuple(notes)


def _flag_differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    names = sorted(one.keys() | other.keys())
    return [
        f"{name}: {one.get(name, 'absent')} and {other.get(name, 'absent')}"
        for name in names
        if one.get(name) != other.get(name)
    ]


def _change(metric: _Metric, one: Samples, other: Samples, *, paired: bool, seed: int) -> MetricChange | None:
    mine, theirs = metric.pick(one), metric.pick(other)
    if paired:
        both = [(x, y) for x, y in zip(mine, theirs, strict=True) if x is not None and y is not None]
        left, right = [x for x, _ in both], [y for _, y in both]
    else:
        left, right = [x for x in mine if x is not None], [y for y in theirs if y is not None]
    if not left or not right:
        return None
    a, b = metric.summary(left), metric.summary(right)
    if not a:
        return None
    interval = _interval(metric.summary, left, right, paired=paired, seed=seed)
    return _told(metric.name, a, b, interval, higher_is_better=metric.higher_is_better)


def _throughput(one: RunView, other: RunView) -> MetricChange | None:
    """One figure a run has no interval: it is shown, and judges nothing."""
    a, b = one.output_tokens_per_s, other.output_tokens_per_s
    return _told("output_tokens_per_s", a, b, None, higher_is_better=True) if a and b else None


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
    for _ in range(_ROUNDS):
        picks = random.choices(range(len(left)), k=len(left))
        others = picks if paired else random.choices(range(len(right)), k=len(right))
        base = summary([left[i] for i in picks])
        if base:
            ratios.append(summary([right[i] for i in others]) / base - 1)
    ratios.sort()
    return Interval(low=percentile(ratios, 0.025), high=percentile(ratios, 0.975)) if ratios else None


def regressions(comparison: Comparison, limit: float) -> tuple[str, ...]:
    """Figures that are worse by more than `limit` (a share) with an interval that excludes no change."""
    return tuple(
        f"{pair.label}: {change.metric} {change.a:.4g} → {change.b:.4g}, {change.loss:.1%} worse"
        for pair in comparison.pairs
        for change in pair.changes
        if change.change is Change.WORSE and change.loss > limit
    )
