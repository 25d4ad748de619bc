"""Gates: floors for a benchmark, each failure a finding that makes the command exit 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.expectations import ACCEPT_LENGTH, FigureVerdict
from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from dflashctl.core.bench_options import Gates
    from dflashctl.core.bench_runs import BenchRun


def gate_findings(runs: tuple[BenchRun, ...], gates: Gates) -> tuple[Finding, ...]:
    """Every floor that a run does not keep; runs without speculation have no accept length to judge."""
    found = [finding for run in runs for finding in (_floor(run, gates.min_accept_length),) if finding]
    if gates.expect:
        found += [finding for run in runs for finding in _published(run)]
    return tuple(found)


def error_findings(runs: tuple[BenchRun, ...]) -> tuple[Finding, ...]:
    """Runs in which requests failed: their figures speak for the others only."""
    return tuple(
        Finding(
            id="bench.errors",
            severity=Severity.ERROR if run.summary.errors == run.summary.requests else Severity.WARNING,
            summary=f"{run.setting.label}: {run.summary.errors} of {run.summary.requests} requests failed",
            detail=", ".join(f"{kind} {count}" for kind, count in run.summary.errors_by_kind.items()) or None,
        )
        for run in runs
        if run.summary.errors
    )


def client_findings(runs: tuple[BenchRun, ...]) -> tuple[Finding, ...]:
    """Runs whose latencies are withheld, because the load generator was the bottleneck."""
    return tuple(
        Finding(
            id="bench.slow_client",
            severity=Severity.ERROR,
            summary=f"{run.setting.label}: latencies withheld: {run.withheld[0]}",
            detail="\n".join(run.withheld[1:]) or None,
            fix="--processes 2, a machine with free cores, or --allow-slow-client to see them all the same",
        )
        for run in runs
        if run.withheld
    )


def _floor(run: BenchRun, floor: float | None) -> Finding | None:
    if floor is None or run.setting.speculation is False:
        return None
    accept = run.summary.accept_length
    if accept is not None and accept.mean >= floor:
        return None
    told = "no accept length was measured" if accept is None else f"accept length {accept.mean:.3f}"
    return Finding(
        id="bench.min_accept_length",
        severity=Severity.ERROR,
        summary=f"{run.setting.label}: {told}, the floor is {floor:g}",
    )


def _published(run: BenchRun) -> list[Finding]:
    return [
        Finding(
            id="bench.expect",
            severity=Severity.ERROR,
            summary=(
                f"{run.setting.label}: accept length {item.measured:.3f}, published {item.published:g} "
                f"({item.deviation:+.1%})"
            ),
            detail="the whole 95 % interval lies below the published figure",
            fix="compare engine release, template and thinking setting with the profile's expect.setup",
        )
        for item in run.expectations
        if item.metric == ACCEPT_LENGTH
        and item.verdict is FigureVerdict.BELOW
        and item.measured is not None
        and item.deviation is not None
    ]
