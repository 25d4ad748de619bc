"""A table that never loses a figure: what does not fit side by side continues in a table below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult

_GAP = 2


@dataclass(frozen=True, kw_only=True)
class WideTable:
    """`columns` are headings, `left` those that are aligned to the left; the first `keys` ones stand in every part."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Text | str, ...], ...]
    keys: int = 1
    left: tuple[str, ...] = ()

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        parts = list(self._parts(options.max_width))
        for number, part in enumerate(parts):
            if number:
                yield Text("")
            yield self._table(part, fits=self._width(part) <= options.max_width)

    def _parts(self, width: int) -> Iterator[tuple[int, ...]]:
        """The columns of each part, as many as fit; a part holds at least one that is no key."""
        keys = tuple(range(self.keys))
        part = keys
        for column in range(self.keys, len(self.columns)):
            if part != keys and self._width((*part, column)) > width:
                yield part
                part = keys
            part = (*part, column)
        yield part

    def _width(self, part: Sequence[int]) -> int:
        widths = [
            max(cell_len(str(cell)) for cell in (self.columns[c], *(row[c] for row in self.rows)))
            for c in part
        ]
        return sum(widths) + _GAP * len(part)

    def _table(self, part: Sequence[int], *, fits: bool) -> Table:
        table = Table(box=None, pad_edge=False, header_style="heading", padding=(0, _GAP, 0, 0))
        for column in part:
            name = self.columns[column]
            justify: Literal["left", "right"] = "left" if name in self.left else "right"
            # Folded rather than cut where even one column beside the keys is too much.
            table.add_column(name, justify=justify, no_wrap=fits, overflow="fold")
        for row in self.rows:
            table.add_row(*(row[column] for column in part))
        return table
