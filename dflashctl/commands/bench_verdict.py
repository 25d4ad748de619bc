"""What a benchmark's runs mean: speed-ups, gates, exports and the report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.bench_save import append_text, write_text
from dflashctl.commands.bench_servers import common
from dflashctl.commands.output_files import refuse_clashes
from dflashctl.core.bench_compare import compare
from dflashctl.core.bench_export import to_csv
from dflashctl.core.bench_gates import client_findings, error_findings, gate_findings
from dflashctl.core.bench_judgement import judged
from dflashctl.core.bench_remarks import doubts_told
from dflashctl.core.bench_serving_lines import to_bench_serving
from dflashctl.core.bench_shared import FOR_CAPACITY
from dflashctl.core.bench_speedup import speedup_of
from dflashctl.core.errors import ExitCode
from dflashctl.core.findings import Finding, Severity, errors
from dflashctl.core.report import Outcome, Report, to_json
from dflashctl.core.run_view import RunFile, read_run_file

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.core.bench_options import BenchOptions
    from dflashctl.core.bench_runs import BenchResult, BenchRun
    from dflashctl.env import Env


def with_speedups(runs: list[BenchRun]) -> list[BenchRun]:
    """Each run with speculation beside the one without, in the same load of the same prompts."""
    plain = {_load_of(run): run for run in runs if run.setting.speculation is False}
    return [
        replace(run, speedup=speedup_of(run, base))
        if run.setting.speculation is not False and (base := plain.get(_load_of(run)))
        else run
        for run in runs
    ]


def _load_of(run: BenchRun) -> tuple[object, ...]:
    """What both must share, so that the ratio is speculation's alone; also the prompts and the cache's state."""
    setting = run.setting
    same = (
        setting.dataset,
        setting.concurrency,
        setting.request_rate,
        setting.prompts_hash,
        setting.cache_flushed,
    )
    return (*same, common(setting.overrides))


def report_of(
    env: Env, options: BenchOptions, result: BenchResult, path: Path, against: RunFile | None
) -> Report:
    """Exit 1 when a floor, a published figure or an earlier result is missed, or too many requests failed.

    A few failed ones leave the outcome partial, with exit 0.
    """
    name = path.name if path.parent == env.cwd else str(path)
    view = read_run_file(to_json(result), name)
    written = _export(env, options, view, result)
    comparison, limit = compare(against, view) if against else None, options.gates.max_regression
    broken = error_findings(result.runs)
    findings = (
        *broken,
        *client_findings(result.runs),
        *gate_findings(result.runs, options.gates),
        *(judged(comparison, limit, allow_unlike=limit is None, whole=False) if comparison else ()),
        *_notes(result.runs),
    )
    failed = bool(errors(findings))
    return Report(
        command="bench",
        data=replace(result, written=written, comparison=comparison),
        outcome=Outcome.FAILED if failed else Outcome.PARTIAL if broken else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if failed else ExitCode.OK,
        findings=findings,
        next_steps=(f"dflashctl bench report {name} -o report.html",),
    )


def refuse_file_clashes(env: Env, options: BenchOptions, output: str) -> None:
    """Before anything is measured. The result file may be the earlier result: its runs stay, as ours are appended."""
    exports = {"--csv": options.csv, "--jsonl": options.jsonl}
    refuse_clashes(env, {"--output": output, **exports}, (options.prompts,))
    refuse_clashes(env, exports, (options.gates.against,))


def _export(env: Env, options: BenchOptions, view: RunFile, result: BenchResult) -> tuple[str, ...]:
    """The table anew, the lines after those that are there, as bench_serving does it."""
    if options.csv is not None:
        write_text(env.cwd / options.csv, to_csv(view))
    if options.jsonl is not None:
        lines = to_bench_serving(view, [run.records for run in result.runs])
        append_text(env.cwd / options.jsonl, lines)
    return tuple(path for path in (options.csv, options.jsonl) if path is not None)


def _notes(runs: tuple[BenchRun, ...]) -> tuple[Finding, ...]:
    """What a reader must know about a run: where speculation costs time, and what may have spoiled a figure."""
    slower = [
        Finding(
            id="bench.slower",
            severity=Severity.WARNING,
            summary=f"{run.setting.label}: speculation makes it slower, {ratio:.2f} times the rate without",
            fix="a smaller block, or no speculation at this load",
        )
        for run in runs
        if run.speedup
        and (ratio := run.speedup.aggregate or run.speedup.per_request) is not None
        and ratio < 1
    ]
    told = [
        Finding(id="bench.warning", severity=Severity.WARNING, summary=f"{run.setting.label}: {warning}")
        for run in runs
        for warning in (
            *run.warnings,
            *_other_turns(run),
            *_disagreement(run),
            *doubts_told(run.summary.doubts),
        )
    ]
    return (*slower, *told)


def _other_turns(run: BenchRun) -> tuple[str, ...]:
    if run.speedup is not None and run.setting.dataset in FOR_CAPACITY:
        return (
            "its texts are made anew in each run: the run without speculation had others of the same length",
        )
    shared = run.speedup.shared_turns if run.speedup is not None else None
    if shared is None:
        return ()
    told = (
        f"it did not finish the same turns as the run without speculation: the speed-up of one request is of the {shared} "
        "that both finished, and there is none of all requests"
    )
    return (told,)


def _disagreement(run: BenchRun) -> tuple[str, ...]:
    check = run.cross_check
    if check is None or check.agrees:
        return ()
    told = (
        f"the server's counters give {check.counted:.3f}, the requests {check.requested:.3f}: "
        "someone else uses this server, or a count is wrong"
    )
    return (told,)
