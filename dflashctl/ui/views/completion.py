"""completion: the script itself, or where it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.completion import CompletionScript

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, CompletionScript)
    if report.data.installed:
        return [Text.assemble(("ok   ", "ok"), f"written to {report.data.installed}")]
    return [report.data.text.rstrip("\n")]
