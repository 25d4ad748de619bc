"""`bench compare`: two result files beside each other, exit 1 when they are unlike or B is worse than allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.bench_save import read_document
from dflashctl.core.bench_compare import compare
from dflashctl.core.bench_judgement import judged
from dflashctl.core.bench_ranges import MAX_REGRESSION
from dflashctl.core.errors import ExitCode
from dflashctl.core.findings import errors
from dflashctl.core.report import Outcome, Report
from dflashctl.core.run_view import read_run_file

if TYPE_CHECKING:
    from dflashctl.env import Env


def bench_compare(
    env: Env, a: str, b: str, *, allow_unlike: bool = False, max_regression: float | None = None
) -> Report:
    """`max_regression` is a share: 0.05 lets B be 5 % worse. UsageProblem for one out of its range."""
    MAX_REGRESSION.require(max_regression)
    first, second = (read_run_file(read_document(env.cwd / path), path) for path in (a, b))
    comparison = compare(first, second, allow_unlike=allow_unlike)
    findings = judged(comparison, max_regression, allow_unlike=allow_unlike)
    failed = bool(errors(findings))
    return Report(
        command="bench compare",
        data=comparison,
        outcome=Outcome.FAILED if failed else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if failed else ExitCode.OK,
        findings=findings,
    )
