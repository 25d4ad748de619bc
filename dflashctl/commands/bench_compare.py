"""`bench compare`: two result files beside each other, exit 1 when they are unlike or B is worse than allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.bench_save import read_document
from dflashctl.core.bench_compare import Comparison, compare, regressions
from dflashctl.core.errors import ExitCode
from dflashctl.core.findings import Finding, Severity, errors
from dflashctl.core.report import Outcome, Report
from dflashctl.core.run_view import read_run_file

if TYPE_CHECKING:
    from dflashctl.env import Env


def bench_compare(
    env: Env, a: str, b: str, *, allow_unlike: bool = False, max_regression: float | None = None
) -> Report:
    """`max_regression` is a share: 0.05 lets B be 5 % worse."""
    first, second = (read_run_file(read_document(env.cwd / path), path) for path in (a, b))
    comparison = compare(first, second, allow_unlike=allow_unlike)
    findings = (*_unlike(comparison, allow_unlike=allow_unlike), *_regressions(comparison, max_regression))
    failed = bool(errors(findings))
    return Report(
        command="bench compare",
        data=comparison,
        outcome=Outcome.FAILED if failed else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if failed else ExitCode.OK,
        findings=findings,
    )


def _unlike(comparison: Comparison, *, allow_unlike: bool) -> tuple[Finding, ...]:
    if not comparison.pairs:
        return (
            Finding(
                id="bench.no_partner",
                severity=Severity.ERROR,
                summary=f"no run of {comparison.a} has a partner in {comparison.b}",
                detail="runs are paired by data set, block size and load",
            ),
        )
    severity = Severity.WARNING if allow_unlike else Severity.ERROR
    return tuple(
        Finding(
            id="bench.unlike",
            severity=severity,
            summary=f"{pair.label}: not comparable: {'; '.join(pair.refusals)}",
            fix=None if allow_unlike else "measure again in the same setting, or --allow-unlike",
        )
        for pair in comparison.pairs
        if pair.refusals
    )


def _regressions(comparison: Comparison, limit: float | None) -> tuple[Finding, ...]:
    if limit is None:
        return ()
    return tuple(
        Finding(id="bench.max_regression", severity=Severity.ERROR, summary=told)
        for told in regressions(comparison, limit)
    )
