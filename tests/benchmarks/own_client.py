"""dflashctl's load generator as a client of the comparison: python own_client.py URL OUT STEP [--as-bench].

--as-bench has it do what `dflashctl bench` has it do: running and exact counts are asked for and read, and the texts'
ends kept. Without it content chunks and their times are all that is taken, as the peers do.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.bench import BenchRequest, CountSource, LoadSpec, judge_client, run_load, summarise
from dflashctl.commands.bench_load import measured_load

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.bench import RequestRecord


def run(url: str, out: Path, step: dict, *, as_bench: bool) -> None:
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": "word " * 16}],
        "max_tokens": step["chunks"],
    }
    requests = [BenchRequest(id=str(i), body=body) for i in range(step["requests"])]
    if as_bench:
        spec = measured_load(url, CountSource.STREAM, concurrency=step["streams"])
    else:
        spec = LoadSpec(url=url, concurrency=step["streams"], counts=None, chunk_usage=False)
    result = run_load(spec, requests)
    if as_bench:
        check(result.records, step["chunks"])
    summary = summarise(result.records, result.window, client=result.client)
    icl, ttft, tpot = summary.icl_ms, summary.ttft_ms, summary.tpot_ms
    findings = judge_client(result.client, ttft_ms_p50=ttft.p50, icl_ms_p50=icl.p50 if icl else None)
    report = {
        "ttft": (ttft.p50, ttft.p99), "itl": (icl.p50, icl.p99), "tpot": (tpot.p50, tpot.p99),
        "wall_s": summary.duration_s, "done": summary.requests - summary.errors,
        "worker_mb": result.client.memory_bytes_max / 2**20, "worker_cpu_s": result.client.cpu_s,
        "lag": result.client.loop_lag_ms_p99, "said": [f.summary for f in findings], "chunks": summary.chunks,
        "backlog": result.client.deferred_bytes_max,
    }  # fmt: skip
    out.write_text(json.dumps(report))


def check(records: Sequence[RequestRecord], chunks: int) -> None:
    """The whole work was done: every chunk's tokens, the exact counts, the end of the text."""
    for record in records:
        assert list(record.chunk_tokens) == [1] * chunks, record.id
        assert record.spec is not None, record.id
        assert record.text == ("tok " * chunks)[-len(record.text or "-") :], record.id


if __name__ == "__main__":
    run(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]), as_bench="--as-bench" in sys.argv[4:])
