"""The JSON lines of SGLang's bench_serving: its keys and units, null where they are not known here."""

from __future__ import annotations

import json
from math import fsum, sqrt
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING

from dflashctl.core.bench_peaks import most_at_once, most_tokens_in_a_second
from dflashctl.core.bench_record import error_name
from dflashctl.core.latency import itl_samples
from dflashctl.core.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_record import RequestRecord
    from dflashctl.core.bench_setting import Provenance
    from dflashctl.core.run_view import DistributionView, RunFile, RunView

    Records = tuple[RequestRecord, ...] | None

# Arguments of data sets that are bench_serving's own, and what a tokenizer would have to be loaded for.
_NEVER_KNOWN = (
    "sharegpt_output_len",
    "random_input_len",
    "random_output_len",
    "random_range_ratio",
    "total_output_tokens_retokenized",
)


def to_bench_serving(file: RunFile, records: Sequence[Records] = ()) -> str:
    """One JSON object a line with the keys of bench_serving's --output-file (0.5.23).

    `records` are those of each run, where they were kept: only they hold what --output-details adds.
    `accept_length` is this run's pooled figure, not the server's lifetime average that bench_serving takes.
    """
    kept = records or (None,) * len(file.runs)
    lines = (
        {**_summary(run, file.provenance(run), each), **_details(run, each)}
        for run, each in zip(file.runs, kept, strict=True)
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


def _summary(run: RunView, origin: Provenance | None, records: Records) -> dict[str, object]:
    duration = None if run.withheld else run.duration_s or None  # without it no rate is made
    total = run.prompt_tokens + run.completion_tokens
    setting = run.setting
    waited = [value for value in run.samples.e2e_ms if value is not None]
    return {
        "tag": run.label,
        "backend": "sglang-oai-chat" if setting.api == "chat" else "sglang",
        "dataset_name": setting.dataset,
        "request_rate": setting.request_rate if setting.request_rate is not None else "inf",
        "max_concurrency": setting.concurrency,
        **dict.fromkeys(_NEVER_KNOWN),
        "server_info": dict(origin.flags) if origin and origin.flags else None,
        "duration": run.duration_s,
        "completed": run.requests - run.errors,
        "total_input_tokens": run.prompt_tokens,
        "total_input_text_tokens": run.prompt_tokens,
        "total_input_vision_tokens": 0,  # prompts are text alone
        "total_output_tokens": run.completion_tokens,
        "request_throughput": run.requests_per_s,
        "input_throughput": run.prompt_tokens / duration if duration else None,
        "output_throughput": run.output_tokens_per_s,
        "total_throughput": total / duration if duration else None,
        **_figures("e2e_latency", run.samples.e2e_ms),
        **_figures("ttft", run.samples.ttft_ms),
        **_figures("tpot", run.samples.tpot_ms),
        **_told("itl", run.itl_ms),
        "std_itl_ms": _deviation(records) if run.itl_ms else None,
        "concurrency": sum(waited) / 1e3 / duration if duration and waited else None,
        "accept_length": run.accept_length.pooled if run.accept_length else None,
        "max_output_tokens_per_s": most_tokens_in_a_second(records) if records and not run.withheld else None,
        "max_concurrent_requests": most_at_once(records) if records else None,
    }


def _details(run: RunView, records: Records) -> dict[str, object]:
    """One value a request; seconds. Gaps are left out where latencies are withheld."""
    always = {
        "output_lens": list(run.samples.completion_tokens),
        "ttfts": [None if v is None else v / 1e3 for v in run.samples.ttft_ms],
    }
    if records is None:
        return always
    return {
        **always,
        "input_lens": [r.prompt_tokens for r in records],
        "itls": [[] if run.withheld else list(r.gaps_s) for r in records],
        "generated_texts": [_text(r) for r in records],
        "errors": [_error(r) for r in records],
    }


def _text(record: RequestRecord) -> str | None:
    known = [part for part in (record.reasoning_text, record.text) if part is not None]
    return "".join(known) if known else None


def _error(record: RequestRecord) -> str:
    return ": ".join(part for part in (error_name(record), record.error_detail) if part)


def _deviation(records: Records) -> float | None:
    """Of the samples of all requests, in ms, each counted as often as it stands for a token."""
    samples = [pair for r in records or () if r.ok for pair in itl_samples(r)]
    count = sum(times for _, times in samples)
    if not count:
        return None
    mean = fsum(value * times for value, times in samples) / count
    return sqrt(fsum((value - mean) ** 2 * times for value, times in samples) / count) * 1e3


def _figures(name: str, samples: Sequence[float | None]) -> dict[str, float | None]:
    known = sorted(value for value in samples if value is not None)
    if not known:
        return {f"{point}_{name}_ms": None for point in ("mean", "median", "std", "p90", "p95", "p99")}
    return {
        f"mean_{name}_ms": fmean(known),
        f"median_{name}_ms": median(known),
        f"std_{name}_ms": pstdev(known),
        f"p90_{name}_ms": percentile(known, 0.90),
        f"p95_{name}_ms": percentile(known, 0.95),
        f"p99_{name}_ms": percentile(known, 0.99),
    }


def _told(name: str, view: DistributionView | None) -> dict[str, float | None]:
    """From the stored percentiles: single gaps are kept with the records alone."""
    points = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
    return {f"{label}_{name}_ms": getattr(view, point, None) for label, point in points.items()}
