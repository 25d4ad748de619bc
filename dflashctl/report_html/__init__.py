"""One self-contained HTML page (and a PNG) from result files: charts as inline SVG, no script, no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.run_view import RunFile


def html_report(files: tuple[RunFile, ...], title: str, made_at: str) -> str:
    """The whole page; Permanent when the plotting library is missing."""
    from dflashctl.report_html.page import page

    return page(files, title, made_at)


def png_report(files: tuple[RunFile, ...], title: str) -> bytes:
    """All charts on one sheet, for sharing."""
    from dflashctl.report_html.charts import sheet

    return sheet(files, title)
