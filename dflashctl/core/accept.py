"""Accept length: its definitions, where the exact counts come from, and the cross-check by counters."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core import stats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_record import RequestRecord, SpecCounts

_STREAMED_SINCE = (0, 5, 19)
_WHOLE_SINCE = (0, 5, 13)


class CountSource(str, Enum):
    """Where the exact per-request counts are read."""

    STREAM = "stream"  # chat stream, `sglext.spec_tokens_details` (return_spec_tokens_details)
    WHOLE = "whole"  # chat without stream, `choices[].meta_info` (return_meta_info): no TTFT
    GENERATE = "generate"  # /generate, `meta_info` of the last event


@dataclass(frozen=True, kw_only=True)
class AcceptLength:
    """C = completion tokens, V = verify steps, A = accepted drafts of one generation turn.

    mean: mean of C/V over turns (the model cards' figure). pooled: sum C / sum V.
    completion_weighted: sum(C * C/V) / sum C. one_plus_accepted: 1 + sum A / sum V, which leaves out the
    token that prefill made. histogram[k]: share of verify steps that kept k drafts.
    """

    mean: float
    pooled: float
    completion_weighted: float
    one_plus_accepted: float | None
    p10: float
    p50: float
    p90: float
    histogram: tuple[float, ...]
    turns: int
    mean_interval: stats.Interval | None = None
    pooled_interval: stats.Interval | None = None


@dataclass(frozen=True, kw_only=True)
class CrossCheck:
    """Pooled accept length by the server's counters over the run, beside the one from the requests."""

    counted: float
    requested: float
    deviation: float
    agrees: bool


def turn_accept_length(completion_tokens: int, spec: SpecCounts) -> float:
    """C/V of one turn, as SGLang's `spec_accept_length` (tokenizer_manager, 0.5.11 to 0.5.23)."""
    return completion_tokens / spec.verify_steps


def accept_length(records: Sequence[RequestRecord], *, seed: int = 0) -> AcceptLength | None:
    """All means over the turns that have exact counts; None when no turn has them.

    A turn without a verify step (one token, or speculation off) has no accept length and is left out.
    """
    turns = [
        (r.completion_tokens, r.spec)
        for r in records
        if r.ok and r.completion_tokens and r.spec is not None and r.spec.verify_steps > 0
    ]
    if not turns:
        return None
    tokens = [c for c, _ in turns]
    steps = [s.verify_steps for _, s in turns]
    ratios = [turn_accept_length(c, s) for c, s in turns]
    ordered = sorted(ratios)
    p10, p50, p90 = (stats.percentile(ordered, share) for share in (0.1, 0.5, 0.9))

    of_mean, of_pooled = _intervals(tokens, steps, ratios, seed)
    return AcceptLength(
        mean=stats.mean(ratios),
        pooled=sum(tokens) / sum(steps),
        completion_weighted=sum(c * r for c, r in zip(tokens, ratios, strict=True)) / sum(tokens),
        one_plus_accepted=_one_plus_accepted([s for _, s in turns]),
        p10=p10,
        p50=p50,
        p90=p90,
        histogram=_histogram([s for _, s in turns]),
        turns=len(turns),
        mean_interval=of_mean,
        pooled_interval=of_pooled,
    )


def _intervals(
    tokens: Sequence[int], steps: Sequence[int], ratios: Sequence[float], seed: int
) -> tuple[stats.Interval | None, stats.Interval | None]:
    """Those of the mean of C/V and of sum C / sum V, from the same draws."""
    if len(ratios) > stats.BOOTSTRAPPED:
        return stats.normal_interval(ratios), stats.ratio_interval(tokens, steps)

    def pooled(picks: Sequence[int]) -> float:
        return sum(map(tokens.__getitem__, picks)) / sum(map(steps.__getitem__, picks))

    of_mean, of_pooled = stats.bootstraps(len(ratios), [stats.mean_of(ratios), pooled], seed=seed)
    return of_mean, of_pooled


def _one_plus_accepted(specs: Sequence[SpecCounts]) -> float | None:
    """1 + sum A / sum V over the turns whose A is known; None when it is known of none."""
    known = [(s.accepted_drafts, s.verify_steps) for s in specs if s.accepted_drafts is not None]
    return 1 + sum(a for a, _ in known) / sum(v for _, v in known) if known else None


def _histogram(specs: Sequence[SpecCounts]) -> tuple[float, ...]:
    """Shares by number of kept drafts, over all turns; empty when no turn brought one."""
    length = max((len(s.histogram) for s in specs), default=0)
    totals = [sum(s.histogram[k] for s in specs if k < len(s.histogram)) for k in range(length)]
    steps = sum(totals)
    return tuple(t / steps for t in totals) if steps else ()


def release_of(version: str | None) -> tuple[int, ...] | None:
    """(0, 5, 19) of "0.5.19", "0.5.19.post1" or "v0.5.19rc0"; None when it is no release number."""
    parts: list[int] = []
    for part in (version or "").lstrip("v").split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts) if len(parts) == 3 else None  # noqa: PLR2004


def count_source(version: str | None, *, streamed: bool = True) -> CountSource:
    """The best source that the release has for chat requests; GENERATE for an unknown or older one.

    With streamed=False the whole answer (0.5.13) is enough, since no TTFT is wanted.
    """
    release = release_of(version)
    if release is None or release < _WHOLE_SINCE:
        return CountSource.GENERATE
    if release >= _STREAMED_SINCE:
        return CountSource.STREAM
    return CountSource.GENERATE if streamed else CountSource.WHOLE


def counter_total(metrics: str, name: str) -> float | None:
    """The sum over all labels of a Prometheus counter in the text format; None when it is absent."""
    values = [
        float(line.rsplit(None, 1)[1])
        for line in metrics.splitlines()
        if line.startswith((name + "{", name + " "))
    ]
    return sum(values) if values else None


def cross_check(
    before: str, after: str, records: Sequence[RequestRecord], *, tolerance: float = 0.02
) -> CrossCheck | None:
    """Compare with `generation_tokens_total / spec_verify_calls_total` between two /metrics texts.

    None when the counters are missing or did not move. Other clients of the server make it disagree.
    """
    names = ("sglang:generation_tokens_total", "sglang:spec_verify_calls_total")
    deltas = [
        None if (a := counter_total(after, name)) is None else a - (counter_total(before, name) or 0.0)
        for name in names
    ]
    own = accept_length(records)
    tokens, steps = deltas
    if tokens is None or not steps or own is None:
        return None
    counted = tokens / steps
    deviation = counted / own.pooled - 1
    return CrossCheck(
        counted=counted, requested=own.pooled, deviation=deviation, agrees=abs(deviation) <= tolerance
    )
