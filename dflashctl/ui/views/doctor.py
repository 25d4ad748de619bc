"""doctor: the verdict, what was found by severity, the memory table, and with --verbose all that was looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.doctor_result import DoctorResult, DoctorWatch
from dflashctl.core.findings import Finding, Severity
from dflashctl.ui.text import finding_lines
from dflashctl.ui.views.doctor_facts import facts_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.deep import DeepFacts
    from dflashctl.core.fit import Fit
    from dflashctl.core.machine import Gpu
    from dflashctl.core.report import Report

SHOWS_FINDINGS = True
_ORDER = (Severity.ERROR, Severity.CRASH, Severity.WARNING, Severity.NOTE)
_GIB = 1 << 30


def render(report: Report) -> list[RenderableType]:
    if isinstance(report.data, DoctorWatch):
        return _watch(report.data)
    data = report.data
    assert isinstance(data, DoctorResult)
    verbose = data.detailed
    lines: list[RenderableType] = [_headline(data, report.findings)]
    for severity in _ORDER:
        for finding in report.findings:
            if finding.severity is severity:
                lines += finding_lines(finding, short=severity is Severity.NOTE and not verbose)
    if data.fit is not None and data.fit.lines:
        lines += [Text(""), *_fit(data.fit)]
    if data.deep is not None:
        lines += [Text(""), *_deep(data.deep)]
    if verbose:
        lines += [Text(""), *facts_lines(data)]
    return [*lines, *_closing(data)]


def _headline(data: DoctorResult, findings: tuple[Finding, ...]) -> Text:
    worst = next((s for s in _ORDER if any(f.severity is s for f in findings)), Severity.OK)
    mark, style = {
        Severity.ERROR: ("FAIL", "error"),
        Severity.CRASH: ("warn", "warning"),
        Severity.WARNING: ("warn", "warning"),
    }.get(worst, ("ok  ", "ok"))
    return Text.assemble((f"{mark} ", style), (data.verdict, "heading"))


def _fit(fit: Fit) -> list[RenderableType]:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(style="detail")
    for line in fit.lines:
        table.add_row(line.part, f"{line.size_bytes / _GIB:.2f} GiB", line.note or "")
    title = "memory of each GPU" + (" (some figures are estimates)" if fit.estimated else "")
    running = f"; up to {fit.max_running_requests} requests at once" if fit.max_running_requests else ""
    return [Text(title, style="heading"), table, Text(f"{fit.summary}{running}")]


def _deep(deep: DeepFacts) -> list[RenderableType]:
    table = Table.grid(padding=(0, 2))
    if deep.cuda_error == 0 and deep.cuda_start_s is not None:
        gpus = "GPU" if deep.cuda_devices == 1 else "GPUs"
        table.add_row("CUDA starts", f"{deep.cuda_start_s:.1f} s for {deep.cuda_devices} {gpus}")
    rates = [copy.gb_per_s for copy in deep.copies if copy.right and copy.gb_per_s]
    if rates:
        table.add_row("copies", f"{len(rates)} pairs right, {min(rates):.0f} to {max(rates):.0f} GB/s")
    if deep.all_reduce_right and deep.all_reduce_s is not None:
        table.add_row("all-reduce", f"right, {deep.all_reduce_s:.1f} s with its set-up")
    if deep.disk_read_gb_per_s is not None:
        table.add_row("disk", f"{deep.disk_read_gb_per_s:.2f} GB/s from {deep.disk_path}")
    if deep.jit_compile_s is not None:
        table.add_row("compilation", f"{deep.jit_compile_s:.1f} s")
    for reason in deep.skipped:
        table.add_row("not tried", reason)
    return [Text("tried for real", style="heading"), table]


def _closing(data: DoctorResult) -> list[RenderableType]:
    took = f" in {data.quick_s:.2f} s" if data.quick_s is not None else ""
    text = f"{data.passed} checks passed{took}"
    if data.unknown:
        text += f"; this machine does not tell: {', '.join(data.unknown)}"
    lines: list[RenderableType] = [Text(text, style="detail")]
    if data.saved:
        lines.append(Text(f"saved to {data.saved}, without serial numbers, UUIDs and names"))
    if not data.detailed:
        lines.append(Text("--verbose shows the facts", style="detail"))
    return lines


def _watch(data: DoctorWatch) -> list[RenderableType]:
    if data.problem is not None:
        return [Text.assemble(("FAIL ", "error"), data.problem)]
    table = Table(box=None, pad_edge=False, header_style="heading")
    for heading in ("GPU", "MEMORY", "USE", "SM CLOCK", "MEM CLOCK", "POWER", "TEMP", "SLOWED BY"):
        table.add_column(heading, justify="left" if heading in {"GPU", "SLOWED BY"} else "right")
    for gpu in data.gpus:
        table.add_row(*_watch_row(gpu))
    lost = [Text.assemble(("warn ", "warning"), reason) for reason in data.unreadable]
    return [table, *lost, Text(f"{data.at_s:.0f} s; Ctrl-C ends", style="detail")]


def _watch_row(gpu: Gpu) -> tuple[str, ...]:
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    idle = {"gpu_idle", "applications_clocks"}
    return (
        f"{gpu.index} {gpu.name}",
        "?" if used is None or total is None else f"{used / _GIB:.1f}/{total / _GIB:.0f} GiB",
        _or_unknown(gpu.utilization_percent, "{} %"),
        f"{_or_unknown(gpu.clock_sm_mhz)}/{_or_unknown(gpu.clock_sm_max_mhz)} MHz",
        f"{_or_unknown(gpu.clock_memory_mhz)}/{_or_unknown(gpu.clock_memory_max_mhz)} MHz",
        f"{_or_unknown(gpu.power_w, '{:.0f}')}/{_or_unknown(gpu.power_limit_w, '{:.0f}')} W",
        _or_unknown(gpu.temperature_c, "{} C"),
        ", ".join(r for r in gpu.throttle_reasons or () if r not in idle)
        or ("-" if gpu.throttle_reasons is not None else "?"),
    )


def _or_unknown(value: float | None, form: str = "{}") -> str:
    return "?" if value is None else form.format(value)
