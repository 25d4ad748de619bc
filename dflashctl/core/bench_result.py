"""From the records of a load run to the figures of a result file's `runs[]`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from dflashctl.core import latency, stats
from dflashctl.core.accept import AcceptLength, accept_length
from dflashctl.core.bench_record import RequestRecord, doubts, error_name
from dflashctl.core.bench_window import steady_window, tokens_within, whole_window
from dflashctl.core.goodput import Goodput, Slo, goodput
from dflashctl.core.weighted_samples import WeightedSamples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from dflashctl.core.bench_record import Window
    from dflashctl.core.client_health import ClientHealth
    from dflashctl.core.stats import Distribution, Interval


_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Tokens per second of single requests."""

    p50: float
    p99: float
    mean: float


@dataclass(frozen=True, kw_only=True)
class ClientFigures:
    """The part of ClientHealth that stands in every run; `backlog_bytes_max` is its deferred_bytes_max."""

    cpu_share: float
    loop_lag_ms_p99: float
    late_sends: int = 0
    connect_ms_p50: float | None = None
    processes: int = 1
    reconnects: int = 0
    backlog_bytes_max: int = 0


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
    doubts: Mapping[str, int] = field(default_factory=dict)
    errors_by_kind: Mapping[str, int] = field(default_factory=dict)
    errors_told: Mapping[str, int] = field(default_factory=dict)
    error_examples: Mapping[str, str] = field(default_factory=dict)
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
    steady = steady_window(done)
    tokens = sum(r.completion_tokens or 0 for r in done)
    cached = _known(r.cached_tokens for r in done)
    samples = _samples(done)
    itl, icl = _gap_distributions(done)
    return RunSummary(
        dataset=labels.dataset,
        block_size=labels.block_size,
        concurrency=labels.concurrency,
        request_rate=labels.request_rate,
        requests=len(records),
        errors=len(records) - len(done),
        accept_length=accept,
        output_tokens_per_s=tokens / duration if duration > 0 and tokens else None,
        per_request_tokens_per_s=_rate(samples.decode_tokens_per_s),
        ttft_ms=stats.distribution(samples.ttft_s, scale=1e3),
        tpot_ms=stats.distribution(samples.tpot_s, scale=1e3),
        itl_ms=itl,
        e2e_ms=stats.distribution(samples.e2e_s, scale=1e3),
        client=_client_figures(client),
        duration_s=duration,
        requests_per_s=len(done) / duration if duration > 0 else None,
        prompt_tokens=sum(r.prompt_tokens or 0 for r in done),
        completion_tokens=tokens,
        reasoning_tokens=sum(r.reasoning_tokens or 0 for r in done),
        cached_tokens=sum(cached) if cached else None,
        steady_output_tokens_per_s=_tokens_per_s(done, steady),
        steady_window_s=steady.duration_s if steady else None,
        inverse_tpot_tokens_per_s=_rate([1 / s for s in samples.tpot_s if s > 0]),
        icl_ms=icl,
        itl_exact=any(r.chunks for r in done) and all(latency.itl_is_exact(r) for r in done if r.chunks),
        chunks=sum(r.chunks for r in done),
        coalesced_chunks=sum(r.coalesced_chunks for r in done),
        turns_without_counts=len(done) - (accept.turns if accept else 0),
        doubts=dict(Counter(doubt for r in done for doubt in doubts(r, labels.block_size))),
        errors_by_kind=dict(Counter(r.error.value for r in records if r.error is not None)),
        errors_told=dict(Counter(name for r in records if (name := error_name(r)) is not None)),
        error_examples=_examples(records),
        finish_reasons=dict(Counter(r.finish_reason or "unknown" for r in done)),
        intervals=_intervals(samples, accept),
        goodput=goodput(records, slo, duration) if slo else None,
    )


def _examples(records: Sequence[RequestRecord]) -> dict[str, str]:
    """What the first request of each kind of error was told."""
    found: dict[str, str] = {}
    for record in records:
        name = error_name(record)
        if name is not None and record.error_detail:
            found.setdefault(name, record.error_detail)
    return found


@dataclass(frozen=True, kw_only=True)
class _Samples:
    """One value a request, where the request has it."""

    ttft_s: list[float]
    tpot_s: list[float]
    e2e_s: list[float]
    decode_tokens_per_s: list[float]


def _samples(done: Sequence[RequestRecord]) -> _Samples:
    return _Samples(
        ttft_s=_known(latency.ttft_s(r) for r in done),
        tpot_s=_known(latency.tpot_s(r) for r in done),
        e2e_s=_known(latency.e2e_s(r) for r in done),
        decode_tokens_per_s=_known(latency.decode_tokens_per_s(r) for r in done),
    )


def _known(values: Iterable[_Number | None]) -> list[_Number]:
    return [value for value in values if value is not None]


def _client_figures(client: ClientHealth | None) -> ClientFigures | None:
    if client is None:
        return None
    return ClientFigures(
        cpu_share=client.cpu_share,
        loop_lag_ms_p99=client.loop_lag_ms_p99,
        late_sends=client.late_sends,
        connect_ms_p50=client.connect_ms.p50 if client.connect_ms else None,
        processes=client.processes,
        reconnects=client.reconnects,
        backlog_bytes_max=client.deferred_bytes_max,
    )


def _tokens_per_s(done: Sequence[RequestRecord], window: Window | None) -> float | None:
    return sum(tokens_within(r, window) for r in done) / window.duration_s if window else None


def _rate(samples: Sequence[float]) -> Rate | None:
    if not samples:
        return None
    ordered = sorted(samples)
    p50, p99 = stats.percentile(ordered, 0.5), stats.percentile(ordered, 0.99)
    return Rate(p50=p50, p99=p99, mean=stats.mean(ordered))


def _gap_distributions(done: Sequence[RequestRecord]) -> tuple[Distribution | None, Distribution | None]:
    """ITL and inter-chunk latency; the same samples where every chunk is one token."""
    icl = gaps_of(done).distribution(scale=1e3)
    if all(r.completion_tokens == r.chunks for r in done):
        return icl, icl
    itl = WeightedSamples()
    for record in done:
        for seconds, tokens in latency.itl_samples(record):
            itl.add(seconds, tokens)
    return itl.distribution(scale=1e3), icl


def gaps_of(records: Sequence[RequestRecord]) -> WeightedSamples:
    """The time between any two neighbouring chunks of an answer, in seconds."""
    gaps = WeightedSamples()
    for record in records:
        gaps.add_all(record.gaps_s)
    return gaps


def _intervals(samples: _Samples, accept: AcceptLength | None) -> dict[str, Interval]:
    """95 % intervals under the names of the figures; core.stats says how each is made."""
    ttft, tpot, e2e = (
        [s * 1e3 for s in values] for values in (samples.ttft_s, samples.tpot_s, samples.e2e_s)
    )
    found = {
        "accept_length.mean": accept.mean_interval if accept else None,
        "accept_length.pooled": accept.pooled_interval if accept else None,
        "ttft_ms.p50": stats.percentile_interval(ttft, 0.5),
        "ttft_ms.mean": stats.normal_interval(ttft),
        "tpot_ms.p50": stats.percentile_interval(tpot, 0.5),
        "tpot_ms.mean": stats.normal_interval(tpot),
        "e2e_ms.p50": stats.percentile_interval(e2e, 0.5),
        "per_request_tokens_per_s.p50": stats.percentile_interval(samples.decode_tokens_per_s, 0.5),
    }
    return {name: interval for name, interval in found.items() if interval is not None}
