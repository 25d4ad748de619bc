"""bench report: where it lies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.bench_runs import BenchReport

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    data = report.data
    if not isinstance(data, BenchReport):
        return []
    written = [
        f"{data.html}: {data.runs} runs from {', '.join(data.files)}",
        *([data.png] if data.png else []),
    ]
    return [Text(line) for line in written]
