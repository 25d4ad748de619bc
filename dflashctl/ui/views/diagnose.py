"""diagnose: the cause, the lines that show it, the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.diagnosis_view import DiagnosisView
from dflashctl.ui.text import finding_lines

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report

# The cause is the answer here, not talk about it.
SHOWS_FINDINGS = True
# What is said about the answer, beside it.
_ABOUT = frozenset({"ended_last", "state_full"})


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, DiagnosisView)
    found = report.data
    doubts = [line for finding in report.findings if finding.id in _ABOUT for line in finding_lines(finding)]
    if found.cause is None:
        return [
            f"no failure found in {found.source} ({found.lines_read} lines read{', unpacked' if found.unpacked else ''})",
            *doubts,
        ]
    lines: list[RenderableType] = [Text.assemble(("cause: ", "error"), found.cause)]
    if found.unpacked:
        lines.append(Text(f"{found.source} was unpacked: {found.lines_read} lines read", style="detail"))
    if found.restarts_since:
        times = "once" if found.restarts_since == 1 else f"{found.restarts_since} times"
        lines.append(
            Text(f"{found.source} was restarted {times} since then, and its log shows no failure after it")
        )
    if not found.in_log:
        last = ", and ended with:" if found.evidence else ""
        lines.append(Text(f"the supervisor saw it; the log shows no failure{last}", style="detail"))
    lines += [f"  {line}" for line in found.evidence]
    if found.fix:
        lines.append(Text.assemble(("fix:   ", "hint"), found.fix))
    again = "starting again will not help" if found.permanent else "starting again may help"
    return [*lines, Text(again, style="detail"), *doubts]
