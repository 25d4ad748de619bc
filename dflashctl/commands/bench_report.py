"""`bench report`: one HTML file (and a PNG) from result files."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.commands.bench_save import read_document, write_bytes, write_text
from dflashctl.commands.output_files import refuse_clashes
from dflashctl.core.bench_runs import BenchReport
from dflashctl.core.errors import UsageProblem
from dflashctl.core.report import Report
from dflashctl.core.run_view import RunFile, read_run_file
from dflashctl.report_html import html_report, png_report

if TYPE_CHECKING:
    from dflashctl.env import Env

DEFAULT_OUTPUT = "dflashctl-report.html"


def bench_report(
    env: Env,
    files: tuple[str, ...],
    *,
    output: str | None = None,
    png: str | None = None,
    title: str | None = None,
) -> Report:
    """Write the report of all runs in `files`; UsageProblem when there are none."""
    if not files:
        raise UsageProblem("no result file was given", hint="dflashctl bench report FILE…")
    target = output or DEFAULT_OUTPUT
    refuse_clashes(env, {"--output": target, "--png": png}, files)
    if png is not None and Path(png).suffix.lower() != ".png":
        raise UsageProblem(
            f"--png {png!r}: the picture is a PNG, whose name ends in .png", hint="--png FILE.png"
        )
    read = tuple(read_run_file(read_document(env.cwd / path), path) for path in files)
    count = sum(len(file.runs) for file in read)
    if not count:
        raise UsageProblem(f"{', '.join(files)}: there are no runs in it")
    heading = title or _title(read)
    made_at = datetime.fromtimestamp(env.clock.wall(), tz=timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    write_text(env.cwd / target, html_report(read, heading, made_at))
    if png is not None:
        write_bytes(env.cwd / png, png_report(read, heading))
    return Report(command="bench report", data=BenchReport(html=target, png=png, runs=count, files=files))


def _title(files: tuple[RunFile, ...]) -> str:
    names = dict.fromkeys(
        session.profile or str(session.target.name).rstrip("/").rpartition("/")[2]
        for file in files
        for session in file.sessions
    )
    return f"DFlash benchmark: {', '.join(names)}" if names else "DFlash benchmark"
