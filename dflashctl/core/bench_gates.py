"""Gates: floors for a benchmark, each failure a finding that makes the command exit 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.bench_counts import unjudgeable
from dflashctl.core.client_health import held_by_others
from dflashctl.core.expectations import ACCEPT_LENGTH, FigureVerdict
from dflashctl.core.failures import counted, cut_off, too_many
from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from dflashctl.core.bench_options import Gates
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_runs import BenchRun

_MEANT = "start it with its draft model, or say that this is meant: --no-speculation"


def gate_findings(runs: tuple[BenchRun, ...], gates: Gates) -> tuple[Finding, ...]:
    """Every floor that a run does not keep; a run that was meant without speculation has no accept length to judge."""
    found = [finding for run in runs for finding in (_floor(run, gates.min_accept_length),) if finding]
    if gates.expect:
        found += [finding for run in runs for finding in _published(run)]
    return tuple(found)


def error_findings(runs: tuple[BenchRun, ...]) -> tuple[Finding, ...]:
    """Runs in which requests failed or were broken off: their figures speak for the others only.

    Errors when there are too many for that, warnings (and a partial outcome) else.
    """
    return tuple(
        finding for run in runs for finding in (*_failed(run.summary, run), *_cut_off(run.summary, run))
    )


def _failed(summary: RunSummary, run: BenchRun) -> list[Finding]:
    if not summary.errors:
        return []
    return [
        Finding(
            id="bench.errors",
            severity=_severity(summary.errors, summary.requests),
            summary=f"{run.setting.label}: {summary.errors} of {summary.requests} requests failed: "
            f"{counted(summary.errors_told)}" + (f"; {run.server_end}" if run.server_end else ""),
            detail="\n".join(f"{kind}: {told}" for kind, told in summary.error_examples.items()) or None,
            fix=f"dflashctl diagnose {run.instance}" if run.server_end else None,
        )
    ]


def _cut_off(summary: RunSummary, run: BenchRun) -> list[Finding]:
    found = cut_off(summary.finish_reasons)
    done = summary.requests - summary.errors
    if not found:
        return []
    return [
        Finding(
            id="bench.cut_off",
            severity=_severity(sum(found.values()), done),
            summary=f"{run.setting.label}: the server broke off {sum(found.values())} of {done} answers: "
            f"finish reason {counted(found)}",
            detail="they count as done, with the tokens that came",
        )
    ]


def _severity(bad: int, requests: int) -> Severity:
    return Severity.ERROR if too_many(bad, requests) else Severity.WARNING


def client_findings(runs: tuple[BenchRun, ...]) -> tuple[Finding, ...]:
    """Runs whose latencies and rates are withheld, because the load generator was the bottleneck."""
    return tuple(
        Finding(
            id="bench.slow_client",
            severity=Severity.ERROR,
            summary=f"{run.setting.label}: latencies and rates withheld: {run.withheld[0]}",
            detail="\n".join(run.withheld[1:]) or None,
            fix=f"{_faster_client(run)}, or --allow-slow-client to see them all the same",
        )
        for run in runs
        if run.withheld
    )


def _faster_client(run: BenchRun) -> str:
    client = run.summary.client
    if client is not None and held_by_others(client.cpu_share):
        return f"something else held its core (it used {client.cpu_share:.0%}): run it again, on a machine with free cores"
    return f"--processes {2 * client.processes if client else 2}, a machine with free cores"


def _floor(run: BenchRun, floor: float | None) -> Finding | None:
    if floor is None or run.setting.plain:
        return None
    accept = run.summary.accept_length
    if run.setting.speculation is False:
        told = f"the server does not speculate, the floor is {floor:g}"
    elif accept is None:
        told = f"no accept length was measured, the floor is {floor:g}"
    elif doubt := unjudgeable(run.summary, run.samples):
        told = f"accept length {accept.mean:.3f} cannot be held to the floor {floor:g}: {doubt}"
    elif accept.mean < floor:
        told = f"accept length {accept.mean:.3f}, the floor is {floor:g}"
    else:
        return None
    return Finding(
        id="bench.min_accept_length",
        severity=Severity.ERROR,
        summary=f"{run.setting.label}: {told}",
        fix=_MEANT if run.setting.speculation is False else None,
    )


def _published(run: BenchRun) -> list[Finding]:
    if run.setting.speculation is False and not run.setting.plain:
        return _missing(run)
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


def _missing(run: BenchRun) -> list[Finding]:
    figures = [f"{item.published:g}" for item in run.expectations if item.metric == ACCEPT_LENGTH]
    if not figures:
        return []
    return [
        Finding(
            id="bench.expect",
            severity=Severity.ERROR,
            summary=f"{run.setting.label}: the server does not speculate, published accept length {' or '.join(figures)}",
            fix=_MEANT,
        )
    ]
