"""Records and health of all processes put together exactly: records side by side, never averaged percentiles."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dflashctl.bench.spec import LoadResult
from dflashctl.bench.wire import FIELDS
from dflashctl.core import stats
from dflashctl.core.bench_record import RequestError, RequestRecord, SpecCounts, Window
from dflashctl.core.bench_window import whole_window
from dflashctl.core.client_health import ClientHealth

if TYPE_CHECKING:
    from collections.abc import Sequence

_LOOP = "epoll"
_ARRAYS = {"gaps_s": "f", "chunk_tokens": "I"}


@dataclass
class LoadParts:
    """The messages of the workers, in the order in which they came."""

    records: list[dict[str, Any]] = field(default_factory=list)
    healths: list[dict[str, Any]] = field(default_factory=list)
    warmups: int = 0
    warmup_errors: int = 0

    def add(self, process: int, message: dict[str, Any]) -> None:
        for row in message.get("records", ()):
            record = dict(zip(FIELDS, row, strict=True))
            record["process"] = process
            for name, kind in _ARRAYS.items():
                record[name] = _unpacked(kind, record[name])
            self.records.append(record)
        if "health" in message:
            self.healths.append(message)
        self.warmups += message.get("warmup", 0)
        self.warmup_errors += message.get("warmup_errors", 0)


def merged(parts: LoadParts, ids: Sequence[str], *, first_index: int) -> LoadResult:
    """The result of the whole run, records in the order of the plan."""
    ordered = sorted(parts.records, key=lambda r: r["index"])
    records = tuple(as_record(r, ids[r["index"] - first_index]) for r in ordered)
    window = whole_window(records) or Window(start_s=0.0, end_s=0.0)
    return LoadResult(
        records=records,
        client=merged_health(parts.healths),
        window=window,
        warmup_requests=parts.warmups,
        warmup_errors=parts.warmup_errors,
        interrupted=any(h["interrupted"] for h in parts.healths),
        scan_mismatches=sum(h["mismatches"] for h in parts.healths),
    )


def as_record(raw: dict[str, Any], request_id: str) -> RequestRecord:
    """A worker's record as the typed one."""
    error = raw["error"]
    steps = raw["verify_steps"]
    spec = None
    if steps is not None:
        spec = SpecCounts(
            verify_steps=steps,
            accepted_drafts=raw["accepted_drafts"],
            proposed_drafts=raw["proposed_drafts"],
            histogram=tuple(raw["histogram"]),
        )
    plain = {name: raw[name] for name in _PLAIN}
    return RequestRecord(
        id=request_id,
        error=RequestError(error[0]) if error else None,
        error_detail=error[1] if error else None,
        spec=spec,
        **plain,
    )


_PLAIN = (
    "intended_s", "sent_s", "first_s", "last_s", "end_s", "status", "prompt_tokens", "completion_tokens",
    "reasoning_tokens", "cached_tokens", "tokens_first_chunk", "chunks", "reasoning_chunks", "coalesced_chunks",
    "gaps_s", "chunk_tokens", "finish_reason", "text", "reasoning_text", "connect_s", "process",
)  # fmt: skip


def merged_health(healths: Sequence[dict[str, Any]]) -> ClientHealth:
    """Lags and connect times of all processes as one sample; the CPU share is the busiest process's.

    A process that had nothing to send is over within microseconds, all of them busy: its share says nothing.
    """
    own = [h["health"] for h in healths]
    lags = sorted(lag * 1e3 for h in own for lag in _unpacked("f", h["lags_s"]))
    connects = [s for h in own for s in _unpacked("f", h["connect_s"])]
    return ClientHealth(
        cpu_share=max((h["cpu_s"] / h["wall_s"] for h in own if h["sends"] and h["wall_s"] > 0), default=0.0),
        loop_lag_ms_p50=stats.percentile(lags, 0.5) if lags else 0.0,
        loop_lag_ms_p99=stats.percentile(lags, 0.99) if lags else 0.0,
        loop_lag_ms_max=lags[-1] if lags else 0.0,
        sends=sum(h["sends"] for h in own),
        late_sends=sum(h["late_sends"] for h in own),
        late_ms_max=max((h["late_max_s"] for h in own), default=0.0) * 1e3,
        connections=len(connects),
        reconnects=sum(h["reconnects"] for h in own),
        connect_ms=stats.distribution(connects, scale=1e3),
        processes=len(own),
        cpu_s=sum(h["cpu_s"] for h in own),
        memory_bytes_max=max((h["memory_bytes"] for h in own), default=0),
        chunks=sum(h["chunks"] for h in healths),
        deferred_bytes_max=max((h["backlog_max"] for h in healths), default=0),
        parsed_busy=sum(h["parsed_busy"] for h in healths),
        loop=_LOOP,
    )


def _unpacked(kind: str, text: str) -> array[Any]:
    values = array(kind)
    values.frombytes(bytes.fromhex(text))
    return values
