"""bench compare: a table a pair of runs, with the interval of each change and what differs in provenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.bench_compare import Change, Comparison, MetricChange, RunPair
from dflashctl.core.figure_text import figure_text
from dflashctl.ui.wide_table import WideTable

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
    lines += [Text(f"  note: {note}", style="note") for note in pair.notes[:_NOTES_SHOWN]]
    if len(pair.notes) > _NOTES_SHOWN:
        lines.append(Text(f"  and {len(pair.notes) - _NOTES_SHOWN} more notes; --json has all", style="note"))
    return lines


def _table(changes: tuple[MetricChange, ...]) -> WideTable:
    return WideTable(
        columns=("  FIGURE", "A", "B", "CHANGE", "95 % INTERVAL", "VERDICT"),
        rows=tuple(map(_row, changes)),
        left=("  FIGURE", "VERDICT"),
    )


def _row(change: MetricChange) -> tuple[Text | str, ...]:
    interval = f"{change.interval.low:+.1%} to {change.interval.high:+.1%}" if change.interval else "-"
    return (
        f"  {change.metric}",
        figure_text(change.a),
        figure_text(change.b),
        f"{change.relative:+.1%}",
        interval,
        Text(change.change.value, style=_STYLES[change.change]),
    )
