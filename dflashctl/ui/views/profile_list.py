"""profile list: one table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.profile_view import ProfileRows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report


def render(report: Report) -> list[RenderableType]:
    assert isinstance(report.data, ProfileRows)
    table = Table(box=None, pad_edge=False, header_style="heading")
    for heading in ("PROFILE", "GPUS", "BLOCK", "ENGINE", "FROM", "SERVES"):
        table.add_column(heading, no_wrap=heading != "SERVES")
    for row in report.data.profiles:
        table.add_row(
            Text(row.name, style="key"),
            str(row.gpus),
            str(row.block_size or "-"),
            row.engine,
            row.origin,
            row.summary,
        )
    return [table]
