"""Verdicts one below the other: mark, title, reason and time side by side, or the reason below where that is narrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

_GAP = 2
_READABLE = 36  # a reason in a narrower column is a tower of words


@dataclass(frozen=True, kw_only=True)
class VerdictRow:
    """`mark` is the verdict, `took` the time, empty where nothing was timed."""

    mark: Text
    title: Text
    why: str
    took: str = ""


@dataclass(frozen=True, kw_only=True)
class VerdictRows:
    """Mark and reason are whole at any width."""

    rows: tuple[VerdictRow, ...]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.rows:
            return
        longest = max(cell_len(row.why) for row in self.rows)
        if self._beside() + min(longest, _READABLE) <= options.max_width:
            yield self._table()
        else:
            yield from self._stacked()

    def _beside(self) -> int:
        """The cells that everything but the reason takes."""
        parts = [(row.mark.cell_len, row.title.cell_len, cell_len(row.took)) for row in self.rows]
        return sum(max(column) + _GAP for column in zip(*parts, strict=True))

    def _table(self) -> Table:
        table = Table(box=None, pad_edge=False, show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        timed = any(row.took for row in self.rows)
        if timed:
            table.add_column(justify="right", no_wrap=True)
        for row in self.rows:
            took = (Text(row.took, style="detail"),) if timed else ()
            table.add_row(row.mark, row.title, Text(row.why), *took)
        return table

    def _stacked(self) -> Iterator[RenderableType]:
        for row in self.rows:
            head = Text.assemble(row.mark, " " * _GAP, row.title, overflow="fold")
            if row.took:
                head.append(" " * _GAP).append(row.took, style="detail")
            yield head
            yield Padding(Text(row.why, overflow="fold"), (0, 0, 0, _GAP))
