"""Whether the load generator itself spoiled the figures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.stats import Distribution

_CPU_SHARE = 0.9
_LATE_SHARE = 0.01
_LAG_OF_TTFT = 0.02
_LAG_OF_CHUNK_GAP = 0.25
_LAG_FLOOR_MS = 1.0
_STREAMS_A_PROCESS = 1024
_OWN_DOING = 0.5  # of a core


@dataclass(frozen=True, kw_only=True)
class ClientHealth:
    """What the processes of the load generator say of themselves over the measured span.

    cpu_share: CPU time by wall time of the busiest process (one process uses one core).
    loop_lag_ms_*: how late a process came to a timer that was due every 10 ms; an arriving chunk may have
    waited as long before it was stamped. late_sends: sends more than 1 ms behind the plan (open loop).
    connect_ms: time to open a connection, never part of TTFT. deferred_bytes_max: the largest backlog
    of stored chunks not yet parsed; parsed_busy: chunks parsed while others were waiting.
    """

    cpu_share: float
    loop_lag_ms_p50: float
    loop_lag_ms_p99: float
    loop_lag_ms_max: float
    sends: int
    late_sends: int
    late_ms_max: float
    connections: int
    reconnects: int
    connect_ms: Distribution | None
    processes: int
    cpu_s: float
    memory_bytes_max: int
    chunks: int
    deferred_bytes_max: int
    parsed_busy: int
    loop: str


def processes_for(concurrency: int | None, cores: int) -> int:
    """How many load processes a concurrency asks for: one for each 1024 requests in flight, at most half the cores.

    One process kept 1024 streams of 60 chunks a second to its core (docs/measuring.md); more cost memory and start.
    """
    wanted = -(-(concurrency or 1) // _STREAMS_A_PROCESS)
    return max(1, min(wanted, cores // 2))


def worst_of(healths: Sequence[ClientHealth]) -> ClientHealth:
    """One health for parts that ran one after the other: the worst share, lags and connect times, the sum of counts."""

    def most(name: str) -> float:
        return max(float(getattr(health, name)) for health in healths)

    def total(name: str) -> int:
        return sum(int(getattr(health, name)) for health in healths)

    connects = [health.connect_ms for health in healths if health.connect_ms is not None]
    return replace(
        healths[-1],
        cpu_share=most("cpu_share"),
        loop_lag_ms_p50=most("loop_lag_ms_p50"),
        loop_lag_ms_p99=most("loop_lag_ms_p99"),
        loop_lag_ms_max=most("loop_lag_ms_max"),
        sends=total("sends"),
        late_sends=total("late_sends"),
        late_ms_max=most("late_ms_max"),
        connections=total("connections"),
        reconnects=total("reconnects"),
        connect_ms=max(connects, key=lambda found: found.p50, default=None),
        cpu_s=sum(health.cpu_s for health in healths),
        memory_bytes_max=max(health.memory_bytes_max for health in healths),
        chunks=total("chunks"),
        deferred_bytes_max=max(health.deferred_bytes_max for health in healths),
        parsed_busy=total("parsed_busy"),
    )


def judge_client(
    health: ClientHealth, *, ttft_ms_p50: float | None = None, icl_ms_p50: float | None = None
) -> tuple[Finding, ...]:
    """Errors where the client was the bottleneck, beside the latencies that it was to measure; else empty."""
    findings = (
        _busy(health),
        _late(health),
        _lagging(health, ttft_ms_p50, _LAG_OF_TTFT, "TTFT"),
        _lagging(health, icl_ms_p50, _LAG_OF_CHUNK_GAP, "inter-chunk latency"),
    )
    return tuple(finding for finding in findings if finding is not None)


def held_by_others(cpu_share: float) -> bool:
    """Whether a process that was late had little to do itself, so that more processes would not help."""
    return cpu_share <= _OWN_DOING


def spoiled(findings: Sequence[Finding]) -> bool:
    """Whether the figures must be refused unless the user allows a slow client."""
    return any(finding.severity is Severity.ERROR for finding in findings)


def _busy(health: ClientHealth) -> Finding | None:
    if health.cpu_share <= _CPU_SHARE:
        return None
    return Finding(
        id="client_cpu",
        severity=Severity.ERROR,
        summary=f"the load generator used {health.cpu_share:.0%} of its core",
        detail=f"{health.processes} process(es), {health.chunks} chunks; above {_CPU_SHARE:.0%} chunks queue up",
        fix="give it more processes (--processes) or run it on a machine with free cores",
    )


def _late(health: ClientHealth) -> Finding | None:
    if health.late_sends <= _LATE_SHARE * health.sends:
        return None
    return Finding(
        id="client_late_sends",
        severity=Severity.ERROR,
        summary=f"{health.late_sends} of {health.sends} requests were sent late",
        detail=f"up to {health.late_ms_max:.1f} ms behind the plan; latencies count from the plan",
        fix="lower --rate, or give it more processes (--processes)",
    )


def _lagging(health: ClientHealth, reference_ms: float | None, share: float, name: str) -> Finding | None:
    """The lag of 1 tick in 100 beside the median that was measured; below 1 ms it is left alone."""
    lag = health.loop_lag_ms_p99
    if reference_ms is None or lag <= max(_LAG_FLOOR_MS, share * reference_ms):
        return None
    return Finding(
        id="client_lag",
        severity=Severity.ERROR,
        summary=f"the load generator's loop lagged {lag:.2f} ms at p99, beside a median {name} of {reference_ms:.2f} ms",
        detail=f"at most {share:.0%} of it may be the client's (p50 {health.loop_lag_ms_p50:.2f} ms, "
        f"largest {health.loop_lag_ms_max:.1f} ms)",
        fix="run it again, or on a machine with free cores: something else held its core"
        if held_by_others(health.cpu_share)
        else "give it more processes (--processes), or a core of its own",
    )
