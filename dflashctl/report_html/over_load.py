"""Charts of a figure over the load: the requests in flight of closed loops, the requests a second of open ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.report_html.lines import draw_lines
from dflashctl.report_html.series import over_load

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.run_view import RunFile, RunView


@dataclass(frozen=True, kw_only=True)
class Load:
    """What lies on the x axis; `of` is None for a run with another kind of load."""

    title: str
    label: str
    of: Callable[[Setting], float | None]


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What lies on the y axis; `even` is a value to compare with by eye."""

    title: str
    label: str
    of: Callable[[RunView], float | None]
    even: float | None = None


LOADS = (
    Load(title="concurrency", label="requests at once", of=lambda setting: setting.concurrency),
    Load(title="request rate", label="requests sent a second", of=lambda setting: setting.request_rate),
)
FIGURES = (
    Figure(
        title="Throughput",
        label="output tokens a second, all requests",
        of=lambda run: run.output_tokens_per_s,
    ),
    Figure(
        title="One request's rate",
        label="tokens a second of one request, median",
        of=lambda run: run.per_request_tokens_per_s.p50 if run.per_request_tokens_per_s else None,
    ),
    Figure(
        title="Speed-up",
        label="throughput against no speculation",
        of=lambda run: run.speedup.aggregate if run.speedup else None,
        even=1.0,
    ),
    Figure(title="TTFT", label="TTFT in ms, median", of=lambda run: run.ttft_ms.p50 if run.ttft_ms else None),
)


def figure_over_load(axes: Axes, files: tuple[RunFile, ...], figure: Figure, load: Load) -> bool:
    """False when no server was measured in two such loads."""
    lines = over_load(files, figure.of, load.of)
    draw_lines(axes, lines)
    if figure.even is not None:
        axes.axhline(figure.even, color="#333333", linewidth=1, linestyle="dashed")
    places = sorted({x for line in lines for x, _ in line.points})
    axes.set_xscale("log", base=2)
    axes.set_xticks(places, [f"{place:g}" for place in places], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel(load.label)
    axes.set_ylabel(figure.label)
    axes.set_ylim(bottom=0)
    return bool(lines)
