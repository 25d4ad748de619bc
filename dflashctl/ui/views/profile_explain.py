"""profile explain: each argument with where it comes from and why; or profiles against releases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.explain import Explained, Matrix, Verdict

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.explain import Cell
    from dflashctl.core.report import Report

_MARKS = {
    Verdict.RUNS: ("runs", "ok"),
    Verdict.RUNS_CHANGED: ("runs*", "warning"),
    Verdict.REFUSED: ("no", "error"),
}


def render(report: Report) -> list[RenderableType]:
    if isinstance(report.data, Matrix):
        return _matrix(report.data)
    assert isinstance(report.data, Explained)
    return _explained(report.data)


def _explained(data: Explained) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="heading", title_justify="left")
    for heading in ("ARGUMENT", "VALUE", "FROM", "WHY"):
        table.add_column(heading, overflow="fold")
    for row in data.rows:
        style = "" if row.in_argv else "detail"
        table.add_row(row.flag, row.value or "", row.origin, row.why or "", style=style)
    for key, value in data.env:
        table.add_row(key, value, "environment", "")
    lines: list[RenderableType] = [
        Text(f"{data.profile} on {data.engine} {data.engine_version}", style="heading"),
        table,
    ]
    if data.translations:
        lines += [Text(""), Text("changed for this release:", style="heading")]
        lines += [
            Text.assemble(f"  {t.from_} → {t.to or '(dropped)'}  ", (t.reason, "detail"))
            for t in data.translations
        ]
    return lines


def _matrix(data: Matrix) -> list[RenderableType]:
    table = Table(box=None, pad_edge=False, header_style="heading")
    table.add_column("PROFILE", no_wrap=True)
    for release in data.releases:
        table.add_column(release.removeprefix("0.5."), justify="center")
    rows: dict[str, dict[str, Cell]] = {}
    for cell in data.cells:
        rows.setdefault(cell.profile, {})[cell.release] = cell
    for profile, cells in rows.items():
        marks = [_MARKS[cells[release].verdict] for release in data.releases]
        table.add_row(Text(profile, style="key"), *(Text(word, style=style) for word, style in marks))
    refused = [cell for cell in data.cells if cell.verdict is Verdict.REFUSED]
    reasons = [
        Text.assemble((f"  {_span(cells)}  ", "key"), f"{cells[0].profile}: {'; '.join(cells[0].reasons)}")
        for cells in _alike(refused)
    ]
    legend = Text(
        "SGLang 0.5.N; runs* with changes (`profile explain NAME --engine-version V` says which)",
        style="detail",
    )
    return [table, legend, *reasons]


def _alike(cells: list[Cell]) -> list[list[Cell]]:
    """Neighbouring releases that refuse a profile for the same reasons."""
    groups: list[list[Cell]] = []
    for cell in cells:
        if groups and (groups[-1][0].profile, groups[-1][0].reasons) == (
            cell.profile,
            _like(groups[-1][0], cell),
        ):
            groups[-1].append(cell)
        else:
            groups.append([cell])
    return groups


def _like(first: Cell, cell: Cell) -> tuple[str, ...]:
    """The cell's reasons in the first one's words, where they differ by the release alone."""
    return tuple(reason.replace(cell.release, first.release) for reason in cell.reasons)


def _span(cells: list[Cell]) -> str:
    return cells[0].release if len(cells) == 1 else f"{cells[0].release}-{cells[-1].release}"
