"""bench: one line a run, the published figure beside the measured one, and the formulas that were used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.bench_remarks import notes
from dflashctl.core.bench_runs import BenchResult, BenchRun
from dflashctl.core.client_line import client_line, worst_client
from dflashctl.core.expectations import ACCEPT_LENGTH, Expectation, FigureVerdict
from dflashctl.core.latency import DEFINITIONS
from dflashctl.ui.views.bench_compare import compared
from dflashctl.ui.wide_table import WideTable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.report import Report
    from dflashctl.core.stats import Distribution

_STYLES = {
    FigureVerdict.REPRODUCED: "ok",
    FigureVerdict.ABOVE: "ok",
    FigureVerdict.BELOW: "error",
    FigureVerdict.UNLIKE: "warning",
    FigureVerdict.UNMEASURED: "warning",
    FigureVerdict.UNJUDGED: "warning",
}
_COLUMNS = (
    "DATA SET",
    "BLOCK",
    "LOAD",
    "DONE",
    "ACCEPT LENGTH",
    "PUBLISHED",
    "REQ TOK/S",
    "OUT TOK/S",
    "TTFT MS",
    "TPOT MS",
    "SPEED-UP",
)
_WHICH_RUN = 3  # the first columns say which run a row is of

_MOST_CLIENT_LINES = 3


def render(report: Report) -> list[RenderableType]:
    result = report.data
    if not isinstance(result, BenchResult):
        return []
    lines: list[RenderableType] = [_heading(result), _table(result.runs)]
    lines += [line for run in result.runs for line in _figures(run)]
    lines += [line for run in result.runs for line in _buckets(run)]
    lines += [Text(f"{run.setting.label}: {note}") for run in result.runs for note in notes(run.summary)]
    lines += _clients(result.runs)
    lines.append(Text(_legend(), style="detail"))
    lines += compared(result.comparison) if result.comparison else []
    lines.append(Text(f"written to {', '.join((str(result.path), *result.written))}"))
    return lines


def _heading(result: BenchResult) -> Text:
    if not result.sessions:
        return Text("nothing was measured", style="warning")
    origin = result.sessions[-1]
    gpus = f", {len(origin.gpus)}x {origin.gpus[0].name}" if origin.gpus else ""
    return Text(
        f"{origin.target.name or origin.url}, engine {origin.engine_version or 'unknown'}{gpus}",
        style="heading",
    )


def _table(runs: tuple[BenchRun, ...]) -> WideTable:
    return WideTable(columns=_COLUMNS, rows=tuple(map(_row, runs)), keys=_WHICH_RUN, left=_COLUMNS[:1])


def _row(run: BenchRun) -> tuple[Text | str, ...]:
    summary, setting = run.summary, run.setting
    rate = summary.per_request_tokens_per_s
    load = f"{setting.request_rate:g}/s" if setting.request_rate is not None else f"c{setting.concurrency}"
    return (
        Text(setting.dataset, style="key"),
        "none" if setting.speculation is False else str(setting.block_size or "?"),
        ", ".join((load, *setting.settings)),
        str(summary.requests - summary.errors) + (f" of {summary.requests}" if summary.errors else ""),
        _accept(summary),
        _published(run),
        f"{rate.p50:.0f}" if rate else "-",
        f"{summary.output_tokens_per_s:.0f}" if summary.output_tokens_per_s else "-",
        _two(summary.ttft_ms),
        _two(summary.tpot_ms),
        _speedup(run),
    )


def _accept(summary: RunSummary) -> str:
    accept = summary.accept_length
    if accept is None:
        return "-"
    interval = accept.mean_interval
    return f"{accept.mean:.3f}" + (f" [{interval.low:.2f}, {interval.high:.2f}]" if interval else "")


def _published(run: BenchRun) -> Text:
    found = next((item for item in run.expectations if item.metric == ACCEPT_LENGTH), None)
    return Text("-") if found is None else _told(found)


def _told(item: Expectation) -> Text:
    deviation = f" {_signed(item.deviation)}" if item.deviation is not None else ""
    return Text(f"{item.published:g}{deviation} {item.verdict.value}", style=_STYLES[item.verdict])


def _signed(share: float) -> str:
    """+0.5 %, and never a minus before nothing."""
    return f"{round(share, 3) + 0.0:+.1%}"


def _two(distribution: Distribution | None) -> str:
    return f"{distribution.p50:.1f} / {distribution.p99:.1f}" if distribution else "-"


def _speedup(run: BenchRun) -> Text:
    speedup = run.speedup
    if speedup is None:
        return Text("-")
    told = [
        f"{value:.2f}" if value is not None else "?" for value in (speedup.per_request, speedup.aggregate)
    ]
    slower = any(value is not None and value < 1 for value in (speedup.per_request, speedup.aggregate))
    return Text(f"x{' / x'.join(told)}", style="error" if slower else "ok")


def _figures(run: BenchRun) -> list[RenderableType]:
    """Published figures other than accept length, and what makes a figure unlike ours."""
    lines: list[RenderableType] = []
    for item in run.expectations:
        if item.metric != ACCEPT_LENGTH:
            measured = "not measured" if item.measured is None else f"{item.measured:.0f}"
            lines.append(
                Text.assemble(f"{run.setting.label}: {item.metric} {measured}, published ", _told(item))
            )
    reasons = dict.fromkeys(item.why for item in run.expectations if item.why)
    lines += [Text(f"{run.setting.label}: not as published: {why}", style="warning") for why in reasons]
    lines += [
        Text(f"{run.setting.label}: {item.metric}: {item.note}") for item in run.expectations if item.note
    ]
    return lines


def _buckets(run: BenchRun) -> list[RenderableType]:
    return [
        Text(
            f"{run.setting.label}, {bucket.name}: accept length {bucket.accept_length.mean:.3f} over {bucket.requests}"
        )
        for bucket in run.buckets
        if bucket.accept_length is not None
    ]


def _clients(runs: tuple[BenchRun, ...]) -> list[RenderableType]:
    """A line a run says how the load generator did; of many runs one line says the worst."""
    known = [(run.setting.label, run.summary.client) for run in runs if run.summary.client is not None]
    if len(known) > _MOST_CLIENT_LINES:
        worst = worst_client([client for _, client in known])
        return [Text(f"client, at worst of {len(known)} runs: {client_line(worst)}")]
    return [Text(f"{label}: client: {client_line(client)}") for label, client in known]


def _legend() -> str:
    told = {
        "ACCEPT LENGTH": "mean over turns of completion tokens / verify steps, with its 95 % interval",
        "REQ TOK/S": f"median over requests of {DEFINITIONS['per_request_tokens_per_s']}",
        "OUT TOK/S": DEFINITIONS["output_tokens_per_s"],
        "TTFT": f"p50 / p99 of {DEFINITIONS['ttft_ms']}",
        "TPOT": f"p50 / p99 of {DEFINITIONS['tpot_ms']}",
        "SPEED-UP": "one request's rate / all requests' rate, against the run without speculation",
    }
    return "\n".join(f"{name}: {text}" for name, text in told.items())
