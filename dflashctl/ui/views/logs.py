"""logs: the lines as the server wrote them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.log_view import LogView

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report

# Frames of a followed log follow each other; they do not replace each other.
APPENDS = True


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, LogView)
    return [line.text for line in report.data.lines]
