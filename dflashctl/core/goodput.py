"""Goodput: the requests that kept given limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core import latency

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_record import RequestRecord


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
