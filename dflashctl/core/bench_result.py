"""From the records of a load run to the figures of a result file's `runs[]`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflashctl.core import latency, stats
from dflashctl.core.accept import AcceptLength, accept_length
from dflashctl.core.bench_record import RequestRecord, Window

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dflashctl.core.client_health import ClientHealth
    from dflashctl.core.stats import Distribution, Interval


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Tokens per second of single requests."""

    p50: float
    p99: float
    mean: float


@dataclass(frozen=True, kw_only=True)
class ClientFigures:
    """The part of ClientHealth that stands in every run."""

    cpu_share: float
    loop_lag_ms_p99: float
    late_sends: int = 0
    connect_ms_p50: float | None = None


@dataclass(frozen=True, kw_only=True)
class Slo:
    """Limits that a good request keeps, all that are given (SGLang's names: ttft, tpot, e2el)."""

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None


@dataclass(frozen=True, kw_only=True)
class Goodput:
    """Requests that kept the SLO: `attainment` = good / sent, failed ones counting as sent."""

    slo: Slo
    good: int
    sent: int
    attainment: float
    requests_per_s: float
    output_tokens_per_s: float


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One entry of `runs[]`; definitions in core.latency.DEFINITIONS and core.accept."""

    dataset: str | None
    block_size: int | None
    concurrency: int | None
    requests: int
    errors: int
    accept_length: AcceptLength | None
    output_tokens_per_s: float | None
    per_request_tokens_per_s: Rate | None
    ttft_ms: Distribution | None
    tpot_ms: Distribution | None
    itl_ms: Distribution | None
    e2e_ms: Distribution | None
    client: ClientFigures | None
    request_rate: float | None = None
    duration_s: float = 0.0
    requests_per_s: float | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int | None = None
    steady_output_tokens_per_s: float | None = None
    steady_window_s: float | None = None
    inverse_tpot_tokens_per_s: Rate | None = None
    icl_ms: Distribution | None = None
    itl_exact: bool = False
    chunks: int = 0
    coalesced_chunks: int = 0
    turns_without_counts: int = 0
    errors_by_kind: Mapping[str, int] = field(default_factory=dict)
    finish_reasons: Mapping[str, int] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    goodput: Goodput | None = None


@dataclass(frozen=True, kw_only=True)
class RunLabels:
    """What the run was, for the summary's first columns."""

    dataset: str | None = None
    block_size: int | None = None
    concurrency: int | None = None
    request_rate: float | None = None


def whole_window(records: Sequence[RequestRecord]) -> Window | None:
    """From the first send to the last end, over the requests that were sent; None when none was."""
    starts = [r.sent_s for r in records if r.sent_s is not None]
    ends = [r.end_s for r in records if r.end_s is not None]
    return Window(start_s=min(starts), end_s=max(ends)) if starts and ends else None


def steady_window(records: Sequence[RequestRecord]) -> Window | None:
    """The span in which the load stood at its level: after the ramp-up, before the last requests drain.

    From when the number in flight first reached 90 % of its highest value until it last left it.
    None when nothing was in flight or the span is empty.
    """
    edges = [(r.sent_s, 1) for r in records if r.sent_s is not None and r.end_s is not None]
    edges += [(r.end_s, -1) for r in records if r.sent_s is not None and r.end_s is not None]
    level, levels = 0, []
    for at, step in sorted(edges):
        level += step
        levels.append((at, level))
    full = 0.9 * max((n for _, n in levels), default=0)
    inside = [i for i, (_, n) in enumerate(levels) if n >= full]
    if not inside or inside[-1] + 1 >= len(levels):
        return None
    start, end = levels[inside[0]][0], levels[inside[-1] + 1][0]
    return Window(start_s=start, end_s=end) if end > start else None


def tokens_within(record: RequestRecord, window: Window) -> float:
    """The record's tokens that arrived inside the window, later ones spread evenly from first to last."""
    tokens = record.completion_tokens or 0
    if record.first_s is None or record.last_s is None or not tokens:
        end = record.end_s
        return float(tokens) if end is not None and window.start_s <= end <= window.end_s else 0.0
    first = min(record.tokens_first_chunk or 1, tokens)
    head = first if window.start_s <= record.first_s <= window.end_s else 0
    span = record.last_s - record.first_s
    overlap = min(record.last_s, window.end_s) - max(record.first_s, window.start_s)
    share = max(0.0, overlap) / span if span > 0 else float(bool(head))
    return head + (tokens - first) * share


def goodput(records: Sequence[RequestRecord], slo: Slo, duration_s: float) -> Goodput:
    """How many requests kept every given limit."""
    good = [r for r in records if r.ok and _keeps(r, slo)]
    tokens = sum(r.completion_tokens or 0 for r in good)
    return Goodput(
        slo=slo,
        good=len(good),
        sent=len(records),
        attainment=len(good) / len(records) if records else 0.0,
        requests_per_s=len(good) / duration_s if duration_s > 0 else 0.0,
        output_tokens_per_s=tokens / duration_s if duration_s > 0 else 0.0,
    )


def _keeps(record: RequestRecord, slo: Slo) -> bool:
    """A limit whose quantity was not measured is not kept, except TPOT of an answer too short to have one."""
    pairs = ((latency.ttft_s(record), slo.ttft_ms), (latency.e2e_s(record), slo.e2e_ms))
    if any(limit is not None and (value is None or value * 1e3 > limit) for value, limit in pairs):
        return False
    tpot = latency.tpot_s(record)
    return slo.tpot_ms is None or tpot is None or tpot * 1e3 <= slo.tpot_ms


def summarise(
    records: Sequence[RequestRecord],
    window: Window | None,
    *,
    labels: RunLabels | None = None,
    client: ClientHealth | None = None,
    slo: Slo | None = None,
    seed: int = 0,
) -> RunSummary:
    """All figures of one run; `window` is LoadResult.window (None: from the records).

    Failed requests count in `requests` and `errors` and nowhere else, except against the goodput.
    """
    window = window or whole_window(records)
    duration = window.duration_s if window else 0.0
    done = [r for r in records if r.ok]
    labels = labels or RunLabels()
    accept = accept_length(done, seed=seed)
    return RunSummary(
        dataset=labels.dataset,
        block_size=labels.block_size,
        concurrency=labels.concurrency,
        request_rate=labels.request_rate,
        requests=len(records),
        errors=len(records) - len(done),
        accept_length=accept,
        client=_client_figures(client),
        duration_s=duration,
        turns_without_counts=len(done) - (accept.turns if accept else 0),
        errors_by_kind=dict(Counter(r.error.value for r in records if r.error is not None)),
        finish_reasons=dict(Counter(r.finish_reason or "unknown" for r in done)),
        goodput=goodput(records, slo, duration) if slo else None,
        intervals=_intervals(done, accept, seed),
        **_counts(done),
        **_rates(done, duration),
        **_latencies(done),
    )


def _client_figures(client: ClientHealth | None) -> ClientFigures | None:
    if client is None:
        return None
    return ClientFigures(
        cpu_share=client.cpu_share,
        loop_lag_ms_p99=client.loop_lag_ms_p99,
        late_sends=client.late_sends,
        connect_ms_p50=client.connect_ms.p50 if client.connect_ms else None,
    )


def _counts(done: Sequence[RequestRecord]) -> dict[str, int | None]:
    cached = [r.cached_tokens for r in done if r.cached_tokens is not None]
    return {
        "prompt_tokens": sum(r.prompt_tokens or 0 for r in done),
        "completion_tokens": sum(r.completion_tokens or 0 for r in done),
        "reasoning_tokens": sum(r.reasoning_tokens or 0 for r in done),
        "cached_tokens": sum(cached) if cached else None,
        "chunks": sum(r.chunks for r in done),
        "coalesced_chunks": sum(r.coalesced_chunks for r in done),
    }


def _rates(done: Sequence[RequestRecord], duration: float) -> dict[str, float | Rate | None]:
    steady = steady_window(done)
    tokens = sum(r.completion_tokens or 0 for r in done)
    decode = [rate for r in done if (rate := latency.decode_tokens_per_s(r)) is not None]
    inverse = [1 / tpot for r in done if (tpot := latency.tpot_s(r))]
    return {
        "output_tokens_per_s": tokens / duration if duration > 0 and tokens else None,
        "requests_per_s": len(done) / duration if duration > 0 else None,
        "steady_output_tokens_per_s": sum(tokens_within(r, steady) for r in done) / steady.duration_s
        if steady
        else None,
        "steady_window_s": steady.duration_s if steady else None,
        "per_request_tokens_per_s": _rate(decode),
        "inverse_tpot_tokens_per_s": _rate(inverse),
    }


def _rate(samples: Sequence[float]) -> Rate | None:
    if not samples:
        return None
    ordered = sorted(samples)
    p50, p99 = stats.percentile(ordered, 0.5), stats.percentile(ordered, 0.99)
    return Rate(p50=p50, p99=p99, mean=stats.mean(ordered))


def _latencies(done: Sequence[RequestRecord]) -> dict[str, Distribution | bool | None]:
    streamed = [r for r in done if r.chunks]
    return {
        "ttft_ms": stats.distribution(_known(latency.ttft_s(r) for r in done), scale=1e3),
        "tpot_ms": stats.distribution(_known(latency.tpot_s(r) for r in done), scale=1e3),
        "e2e_ms": stats.distribution(_known(latency.e2e_s(r) for r in done), scale=1e3),
        "itl_ms": stats.distribution([s for r in done for s in latency.itl_samples_s(r)], scale=1e3),
        "icl_ms": stats.distribution([gap for r in done for gap in r.gaps_s], scale=1e3),
        "itl_exact": bool(streamed) and all(latency.itl_is_exact(r) for r in streamed),
    }


def _known(values: object) -> list[float]:
    return [value for value in values if value is not None]  # type: ignore[attr-defined]


def _intervals(
    done: Sequence[RequestRecord], accept: AcceptLength | None, seed: int
) -> dict[str, Interval]:
    """95 % intervals under the names of the figures: by bootstrap for means, by order statistics for medians."""
    ttft = _known(latency.ttft_s(r) for r in done)
    tpot = _known(latency.tpot_s(r) for r in done)
    e2e = _known(latency.e2e_s(r) for r in done)
    decode = _known(latency.decode_tokens_per_s(r) for r in done)
    found = {
        "accept_length.mean": accept.mean_interval if accept else None,
        "accept_length.pooled": accept.pooled_interval if accept else None,
        "ttft_ms.p50": stats.percentile_interval([s * 1e3 for s in ttft], 0.5),
        "ttft_ms.mean": stats.mean_interval([s * 1e3 for s in ttft], seed=seed),
        "tpot_ms.p50": stats.percentile_interval([s * 1e3 for s in tpot], 0.5),
        "tpot_ms.mean": stats.mean_interval([s * 1e3 for s in tpot], seed=seed),
        "e2e_ms.p50": stats.percentile_interval([s * 1e3 for s in e2e], 0.5),
        "per_request_tokens_per_s.p50": stats.percentile_interval(decode, 0.5),
    }
    return {name: interval for name, interval in found.items() if interval is not None}
