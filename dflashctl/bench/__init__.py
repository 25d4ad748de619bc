"""Load a server and measure it: `run_load` sends BenchRequests as a LoadSpec says and returns RequestRecords.

Importing this is cheap; the load generator's own modules are loaded at the first call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.bench.spec import (
    CHAT,
    GENERATE,
    BenchRequest,
    LoadProgress,
    LoadResult,
    LoadSpec,
)
from dflashctl.core.accept import CountSource
from dflashctl.core.bench_record import RequestError, RequestRecord, SpecCounts, Window
from dflashctl.core.bench_result import Goodput, RunLabels, RunSummary, Slo, summarise
from dflashctl.core.client_health import ClientHealth, judge_client, spoiled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "CHAT",
    "GENERATE",
    "BenchRequest",
    "ClientHealth",
    "CountSource",
    "Goodput",
    "LoadProgress",
    "LoadResult",
    "LoadSpec",
    "RequestError",
    "RequestRecord",
    "RunLabels",
    "RunSummary",
    "Slo",
    "SpecCounts",
    "Window",
    "judge_client",
    "probe_counts",
    "run_load",
    "spoiled",
    "summarise",
]


def run_load(
    spec: LoadSpec,
    requests: Sequence[BenchRequest],
    notify: Callable[[LoadProgress], None] | None = None,
    *,
    warmup: Sequence[BenchRequest] = (),
) -> LoadResult:
    """Send `warmup` (left out of everything), then `requests`; see dflashctl.bench.run."""
    from dflashctl.bench.run import run_load as run

    return run(spec, requests, notify, warmup=warmup)


def probe_counts(spec: LoadSpec, request: BenchRequest) -> CountSource | None:
    """Which source of exact counts the server at spec.url answers to; see dflashctl.bench.probe."""
    from dflashctl.bench.probe import probe_counts as probe

    return probe(spec, request)
