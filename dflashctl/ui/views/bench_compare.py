"""bench compare: a table a pair of runs, with the interval of each change and what differs in provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.bench_compare import Change, Comparison, MetricChange, RunPair

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report

_STYLES = {Change.BETTER: "ok", Change.WORSE: "error", Change.SAME: "detail", Change.UNKNOWN: "detail"}
_NOTES_SHOWN = 12


def render(report: Report) -> list[RenderableType]:
    comparison = report.data
    return compared(comparison) if isinstance(comparison, Comparison) else []


def compared(comparison: Comparison) -> list[RenderableType]:
    """Both files' names, then a table a pair."""
    lines: list[RenderableType] = [Text(f"A: {comparison.a}\nB: {comparison.b}", style="heading")]
    for pair in comparison.pairs:
        lines += _pair(pair)
    for name, labels in (("A", comparison.only_a), ("B", comparison.only_b)):
        lines += [Text(f"only in {name}: {label}", style="warning") for label in labels]
    return lines


def _pair(pair: RunPair) -> list[RenderableType]:
    lines: list[RenderableType] = [Text(pair.label, style="key")]
    if pair.changes:
        lines.append(_table(pair.changes))
        how = (
            "the same prompts drawn on both sides" if pair.paired else "prompts drawn on each side by itself"
        )
        lines.append(Text(f"  95 % intervals by bootstrap, {how}", style="detail"))
    lines += [Text(f"  differs: {note}", style="note") for note in pair.notes[:_NOTES_SHOWN]]
    if len(pair.notes) > _NOTES_SHOWN:
        lines.append(
            Text(f"  and {len(pair.notes) - _NOTES_SHOWN} more differences; --json has all", style="note")
        )
    return lines


def _table(changes: tuple[MetricChange, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="heading")
    for column in ("  FIGURE", "A", "B", "CHANGE", "95 % INTERVAL", "VERDICT"):
        table.add_column(
            column, justify="left" if column in {"  FIGURE", "VERDICT"} else "right", no_wrap=True
        )
    for change in changes:
        interval = f"{change.interval.low:+.1%} to {change.interval.high:+.1%}" if change.interval else "-"
        table.add_row(
            f"  {change.metric}",
            f"{change.a:.4g}",
            f"{change.b:.4g}",
            f"{change.relative:+.1%}",
            interval,
            Text(change.change.value, style=_STYLES[change.change]),
        )
    return table
