"""Finding out by one request each which exact counts a server gives."""

from __future__ import annotations

from dataclasses import replace

from dflashctl.bench.run import run_load
from dflashctl.bench.server import refuse_simulated, server_info
from dflashctl.bench.spec import GENERATE, BenchRequest, LoadSpec
from dflashctl.core.accept import CountSource
from dflashctl.core.errors import Interrupted, Unavailable


def probe_counts(spec: LoadSpec, request: BenchRequest) -> CountSource | None:
    """The best source that answers to `request`: the stream, else the whole answer, else none.

    None also stands for a server that does not speculate. Raises CheckFailed for simulated accept lengths and
    Unavailable when the server does not serve the request at all; Interrupted on Ctrl-C.
    """
    refuse_simulated(server_info(spec))
    if request.api == GENERATE:
        return CountSource.GENERATE
    for source in (CountSource.STREAM, CountSource.WHOLE):
        if _has_counts(spec, request, source):
            return source
    return None


def _has_counts(spec: LoadSpec, request: BenchRequest, source: CountSource) -> bool:
    once = replace(spec, counts=source, concurrency=1, rate=None, processes=1, max_duration_s=None)
    result = run_load(once, [request])
    if result.interrupted:
        raise Interrupted("interrupted at the first request")
    record = result.records[0]
    if record.error is not None and source is CountSource.STREAM:
        raise Unavailable(f"a first request failed: {record.error_detail or record.error.value}")
    return record.ok and record.spec is not None
