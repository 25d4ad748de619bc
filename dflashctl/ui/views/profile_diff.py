"""profile diff: the fields that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.profile_diff import Differences

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, Differences)
    data = report.data
    if not data.differences:
        return [
            Text.assemble(("same  ", "ok"), f"{data.left} and {data.right}: {data.compared} fields compared")
        ]
    table = Table(box=None, pad_edge=False, header_style="heading")
    for heading in ("FIELD", data.left, data.right):
        table.add_column(heading, overflow="fold")
    for difference in data.differences:
        table.add_row(Text(difference.field, style="key"), difference.left or "-", difference.right or "-")
    return [table]
