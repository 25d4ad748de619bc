"""The CSV export: one row a run."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from dflashctl.core.failures import counted

if TYPE_CHECKING:
    from dflashctl.core.run_view import RunFile, RunView

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
    "unfinished",
    "withheld",
    "turns_without_counts",
    "warnings",
    "verdict",
)


def to_csv(file: RunFile) -> str:
    """One row a run with a header; empty cells are unknown, or say that there is nothing to tell.

    `unfinished` and `withheld` say why figures are of a part of the requests, or missing.
    """
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
        run.unfinished,
        "; ".join(run.withheld),
        run.turns_without_counts,
        "; ".join(run.warnings),
        " ".join(f"{e.metric}={e.verdict}" for e in run.expectations),
    ]
    return [*head, *latencies, *tail]
