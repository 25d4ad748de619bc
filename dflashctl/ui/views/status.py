"""status: one instance as a short table, several as one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.instance import Phase
from dflashctl.core.status import InstanceStatus, StatusList
from dflashctl.core.verdict import signal_name
from dflashctl.ui.progress_line import elapsed_text
from dflashctl.ui.wide_table import WideTable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.instance import LastExit
    from dflashctl.core.metrics_text import LiveFigures
    from dflashctl.core.report import Report

# Kinds that say no more than how the process ended.
_ONLY_HOW = frozenset({"killed", "exited"})
_STYLES = {Phase.READY: "ok", Phase.UNHEALTHY: "error", Phase.FAILED: "error", Phase.BACKOFF: "warning"}


def render(report: Report) -> list[RenderableType]:
    if isinstance(report.data, StatusList):
        return _many(report.data)
    assert isinstance(report.data, InstanceStatus)
    return _one(report.data)


def _many(listed: StatusList) -> list[RenderableType]:
    if not listed.instances:
        return [Text("nothing was started here yet")]
    headings = ("INSTANCE", "PHASE", "FOR", "AT", "RUNNING", "TOK/S", "ACCEPT")
    return [WideTable(columns=headings, left=headings, rows=tuple(_cells(one) for one in listed.instances))]


def _cells(one: InstanceStatus) -> tuple[Text | str, ...]:
    live = one.live
    return (
        Text(one.name, style="key"),
        _phase(one),
        _for(one),
        one.server.url if one.server and one.running else "-",
        _number(live.running if live else None, "{:d}"),
        _number(live.output_tokens_per_s if live else None, "{:.0f}"),
        _number(live.accept_length if live else None, "{:.2f}"),
    )


def _one(one: InstanceStatus) -> list[RenderableType]:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for key, value in _rows(one):
        table.add_row(Text(key, style="key"), value)
    return [table]


def _rows(one: InstanceStatus) -> list[tuple[str, str | Text]]:
    rows: list[tuple[str, str | Text]] = [
        ("instance", one.name),
        ("phase", Text.assemble(_phase(one), f"  {_for(one)}")),
    ]
    if one.reason:
        rows.append(("because", one.reason.text))
    if one.phase is Phase.READY and one.healthy is False:
        rows.append(("in doubt", Text("its last test completion failed", style="warning")))
    if one.server:
        server = one.server
        rows += [
            ("at", server.url),
            ("serves", f"{server.model}, {server.engine} {server.engine_version}"),
            (
                "draft",
                f"{server.draft}, block {server.block_size}"
                if server.speculation
                else "none (no speculation)",
            ),
        ]
    if one.gpus:
        rows.append(("gpus", ", ".join(one.gpus)))
    if one.restarts and one.running:
        rows.append(("restarts", f"{one.restarts.used} of {one.restarts.budget}"))
    if one.drift is not None:
        changed = Text(
            "the profile or the engine has changed since the start: down, then up, to apply it",
            style="warning",
        )
        rows.append(("plan", changed if one.drift else "as it would be made now"))
    if one.live:
        rows.append(("live", _live(one.live)))
    if one.last_exit:
        rows.append(("last exit", _exit(one.last_exit)))
    if one.log:
        rows.append(("log", one.log))
    return rows


def _exit(last: LastExit) -> str:
    """The kind when it is known, and how the process ended."""
    ended = None if last.status is None else f"exit status {last.status}"
    if last.signal is not None:
        ended = f"killed by {signal_name(last.signal)}"
    if ended is None or last.kind in _ONLY_HOW:
        return ended or last.kind or "not known"
    return f"{last.kind} ({ended})" if last.kind else ended


def _live(live: LiveFigures) -> str:
    use = None if live.kv_use is None else live.kv_use * 100
    return ", ".join(
        (
            f"{_number(live.running, '{:d}')} running, {_number(live.queued, '{:d}')} queued",
            f"{_number(live.output_tokens_per_s, '{:.0f}')} tok/s",
            f"accept length {_number(live.accept_length, '{:.2f}')}",
            f"KV use {_number(use, '{:.1f}')} %",
        )
    )


def _phase(one: InstanceStatus) -> Text:
    step = one.progress
    text = one.phase.value
    if step is not None:
        counted = f" {step.done}/{step.total}" if step.total else ""
        text += f": {step.step.replace('_', ' ')}{counted}"
    return Text(text, style=_STYLES.get(one.phase, "note"))


def _for(one: InstanceStatus) -> str:
    return elapsed_text(one.phase_for_s) if one.phase_for_s is not None else "-"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)
