"""Exports: one CSV row a run, and the JSON lines of SGLang's bench_serving."""

from __future__ import annotations

import csv
import io
import json
from statistics import fmean, median, pstdev
from typing import TYPE_CHECKING

from dflashctl.core.failures import counted
from dflashctl.core.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.run_view import DistributionView, RunFile, RunView

_LATENCIES = ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms")
_POINTS = ("mean", "p50", "p90", "p95", "p99")
_HEAD = (
    "dataset", "block_size", "speculation", "concurrency", "request_rate", "requests", "errors", "duration_s",
    "accept_length_mean", "accept_length_low", "accept_length_high", "accept_length_pooled",
    "accept_length_completion_weighted", "accept_length_p10", "accept_length_p50", "accept_length_p90",
    "output_tokens_per_s", "requests_per_s", "per_request_tokens_per_s_p50", "per_request_tokens_per_s_p99",
    "prompt_tokens", "completion_tokens",
)  # fmt: skip
_CLIENT = ("late_sends", "connect_ms_p50", "processes", "reconnects", "backlog_bytes_max")
_TAIL = (
    "speedup_per_request",
    "speedup_aggregate",
    "client_cpu_share",
    "client_loop_lag_ms_p99",
    "engine_version",
    "started_at",
    "overrides",
    "errors_told",
    "finish_reasons",
    "doubts",
    "goodput_good",
    "goodput_attainment",
    "goodput_requests_per_s",
    *(f"client_{name}" for name in _CLIENT),
)


def to_csv(file: RunFile) -> str:
    """One row a run with a header; empty cells are unknown."""
    latencies = [f"{name}_{point}" for name in _LATENCIES for point in _POINTS]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*_HEAD, *latencies, *_TAIL])
    for run in file.runs:
        writer.writerow(["" if cell is None else cell for cell in _row(file, run)])
    return out.getvalue()


def _row(file: RunFile, run: RunView) -> list[object]:
    accept, rate, setting = run.accept_length, run.per_request_tokens_per_s, run.setting
    interval = accept.mean_interval if accept else None
    origin = file.provenance(run)
    head = [
        setting.dataset, setting.block_size, setting.speculation, setting.concurrency, setting.request_rate,
        run.requests, run.errors, run.duration_s,
        *(getattr(accept, "mean", None), getattr(interval, "low", None), getattr(interval, "high", None)),
        *(getattr(accept, name, None) for name in ("pooled", "completion_weighted", "p10", "p50", "p90")),
        run.output_tokens_per_s, run.requests_per_s, getattr(rate, "p50", None), getattr(rate, "p99", None),
        run.prompt_tokens, run.completion_tokens,
    ]  # fmt: skip
    latencies = [getattr(getattr(run, name), point, None) for name in _LATENCIES for point in _POINTS]
    tail = [
        getattr(run.speedup, "per_request", None),
        getattr(run.speedup, "aggregate", None),
        getattr(run.client, "cpu_share", None),
        getattr(run.client, "loop_lag_ms_p99", None),
        origin.engine_version if origin else None,
        origin.started_at if origin else None,
        " ".join(f"{path}={value}" for path, value in setting.overrides),
        *(
            counted(counts)
            for counts in (run.errors_told or run.errors_by_kind, run.finish_reasons, run.doubts)
        ),
        *(getattr(run.goodput, name, None) for name in ("good", "attainment", "requests_per_s")),
        *(getattr(run.client, name, None) for name in _CLIENT),
    ]
    return [*head, *latencies, *tail]


def to_bench_serving(file: RunFile) -> str:
    """One JSON object a line with the keys of bench_serving's --output-file (0.5.23).

    `accept_length` is this run's pooled figure, not the server's lifetime average that bench_serving takes.
    """
    return "".join(json.dumps(_bench_serving(run)) + "\n" for run in file.runs)


def _bench_serving(run: RunView) -> dict[str, object]:
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
        "duration": run.duration_s,
        "completed": run.requests - run.errors,
        "total_input_tokens": run.prompt_tokens,
        "total_output_tokens": run.completion_tokens,
        "request_throughput": run.requests_per_s,
        "input_throughput": run.prompt_tokens / duration if duration else None,
        "output_throughput": run.output_tokens_per_s,
        "total_throughput": total / duration if duration else None,
        **_figures("e2e_latency", run.samples.e2e_ms),
        **_figures("ttft", run.samples.ttft_ms),
        **_figures("tpot", run.samples.tpot_ms),
        **_told("itl", run.itl_ms),
        "concurrency": sum(waited) / 1e3 / duration if duration and waited else None,
        "accept_length": run.accept_length.pooled if run.accept_length else None,
        "output_lens": list(run.samples.completion_tokens),
        "ttfts": [None if v is None else v / 1e3 for v in run.samples.ttft_ms],
    }


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
    """From the stored percentiles: single gaps are not kept, so there is no deviation."""
    points = {"mean": "mean", "median": "p50", "p90": "p90", "p95": "p95", "p99": "p99"}
    return {f"{label}_{name}_ms": getattr(view, point, None) for label, point in points.items()}
