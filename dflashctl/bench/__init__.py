"""Load a server and measure it: `run_load` sends BenchRequests as a LoadSpec says and returns RequestRecords.

Importing this is cheap; the load generator's own modules are loaded at the first call.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.bench.probe import probe_counts
    from dflashctl.bench.run import run_load
    from dflashctl.bench.spec import CHAT, GENERATE, BenchRequest, LoadProgress, LoadResult, LoadSpec
    from dflashctl.core.accept import CountSource
    from dflashctl.core.bench_record import RequestError, RequestRecord, SpecCounts, Window
    from dflashctl.core.bench_result import RunLabels, RunSummary, summarise
    from dflashctl.core.client_health import ClientHealth, judge_client, processes_for, spoiled
    from dflashctl.core.goodput import Goodput, Slo

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
    "processes_for",
    "run_load",
    "spoiled",
    "summarise",
]

_HOMES = {
    "dflashctl.bench.probe": ("probe_counts",),
    "dflashctl.bench.run": ("run_load",),
    "dflashctl.bench.spec": ("CHAT", "GENERATE", "BenchRequest", "LoadProgress", "LoadResult", "LoadSpec"),
    "dflashctl.core.accept": ("CountSource",),
    "dflashctl.core.bench_record": ("RequestError", "RequestRecord", "SpecCounts", "Window"),
    "dflashctl.core.bench_result": ("RunLabels", "RunSummary", "summarise"),
    "dflashctl.core.goodput": ("Goodput", "Slo"),
    "dflashctl.core.client_health": ("ClientHealth", "judge_client", "processes_for", "spoiled"),
}


def __getattr__(name: str) -> object:
    """Load a public name at its first use; the measuring processes import this package for its modules alone."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
