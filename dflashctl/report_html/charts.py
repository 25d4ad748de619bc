"""The charts, drawn with matplotlib: each a function that fills one pair of axes, or a figure with several."""

from __future__ import annotations

import io
from functools import partial
from typing import TYPE_CHECKING

from dflashctl.core.errors import Permanent
from dflashctl.report_html import series
from dflashctl.report_html.histogram import accept_histogram
from dflashctl.report_html.lines import draw_lines, legend
from dflashctl.report_html.look import colour, styled
from dflashctl.report_html.over_load import FIGURES, LOADS, figure_over_load

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from dflashctl.core.run_view import RunFile

    Chart = Callable[[Axes, tuple[RunFile, ...]], bool]
    Drawing = Callable[[FigureBase, tuple[RunFile, ...]], bool]

_SIZE = (7.2, 4.2)
_LEAST_SPREAD = 3
_MANY_GROUPS = 6
_MOST_LABELLED = 1000
_LABELLED = frozenset({"2.0", "3.0", "5.0"})


def accept_by_set(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    bars = series.accept_bars(files)
    groups = list(dict.fromkeys(bar.group for bar in bars))
    names = list(dict.fromkeys(bar.series for bar in bars))
    width = min(0.22, 0.8 / max(1, len(names)))
    marked: set[str] = set()
    for number, name in enumerate(names):
        mine = [bar for bar in bars if bar.series == name]
        places = [groups.index(bar.group) + (number - (len(names) - 1) / 2) * width for bar in mine]
        axes.bar(places, [bar.value for bar in mine], width * 0.92, color=colour(number), label=name)
        for place, bar in zip(places, mine, strict=True):
            _annotate(axes, place, bar)
            _mark(axes, place, width, bar, marked)
    axes.set_xticks(range(len(groups)), groups, fontsize=10 if len(groups) < _MANY_GROUPS else 7)
    axes.set_xlim(-0.6, len(groups) - 0.4)
    axes.set_xlabel("each server at the lowest load that was measured")
    axes.set_ylabel("accept length (tokens a verify step)")
    axes.set_ylim(0, 1.2 * max((bar.top for bar in bars), default=1.0))
    legend(axes, len(names) + len(marked))
    return bool(bars)


def _annotate(axes: Axes, place: float, bar: series.Bar) -> None:
    """The interval, and the value above it."""
    if bar.low is not None and bar.high is not None:
        errors = [[bar.value - bar.low], [bar.high - bar.value]]
        axes.errorbar([place], [bar.value], yerr=errors, color="#333333", capsize=3, linewidth=1)
    top = bar.high or bar.value
    axes.annotate(
        f"{bar.value:.2f}", (place, top), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=8
    )


def _mark(axes: Axes, place: float, width: float, bar: series.Bar, marked: set[str]) -> None:
    """A line where the published figure stands, of another kind where the bar is not judged by it."""
    if bar.published is None:
        return
    name = "published for another setting" if bar.unlike else "published"
    axes.hlines(
        bar.published,
        place - width / 2,
        place + width / 2,
        colors="#888888" if bar.unlike else "#000000",
        linestyles="dotted" if bar.unlike else "dashed",
        linewidth=1.6,
        label=f"_{name}" if name in marked else name,
    )
    marked.add(name)


def accept_spread(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    return _ecdf(axes, series.accept_ecdfs(files), "accept length of a turn", logarithmic=False)


def ttft_spread(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    return _ecdf(axes, series.ecdfs(files, lambda run: run.samples.ttft_ms), "TTFT in ms")


def tpot_spread(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    return _ecdf(axes, series.ecdfs(files, lambda run: run.samples.tpot_ms), "TPOT in ms")


def e2e_spread(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    return _ecdf(axes, series.ecdfs(files, lambda run: run.samples.e2e_ms), "end to end in ms")


def gpu_power(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    return _timeline(axes, series.gpu_lines(files, "power_w"), "GPU power in W")


def gpu_clock(axes: Axes, files: tuple[RunFile, ...]) -> bool:
    return _timeline(axes, series.gpu_lines(files, "clock_sm_mhz"), "SM clock in MHz", from_zero=False)


def _alone(chart: Chart) -> Drawing:
    """A chart that has a figure to itself."""
    return lambda figure, files: chart(_axes(figure), files)


CHARTS: tuple[tuple[str, Drawing], ...] = (
    ("Accept length by data set", _alone(accept_by_set)),
    ("Drafts kept by a verify step", accept_histogram),
    ("Accept length over turns", _alone(accept_spread)),
    *(
        (f"{figure.title} against {load.title}", _alone(partial(figure_over_load, figure=figure, load=load)))
        for load in LOADS
        for figure in FIGURES
    ),
    ("Distribution of TTFT", _alone(ttft_spread)),
    ("Distribution of TPOT", _alone(tpot_spread)),
    ("Distribution of end-to-end latency", _alone(e2e_spread)),
    ("GPU power during the runs", _alone(gpu_power)),
    ("GPU clocks during the runs", _alone(gpu_clock)),
)


def svg_charts(files: tuple[RunFile, ...]) -> tuple[tuple[str, str], ...]:
    """(title, SVG element) of each chart that has something to show."""
    made = []
    for title, chart in CHARTS:
        figure = _figure(_SIZE)
        if chart(figure, files):
            made.append((title, _svg(figure)))
    return tuple(made)


def sheet(files: tuple[RunFile, ...], title: str) -> bytes:
    """A PNG of all charts, two a row."""
    charts = [(name, chart) for name, chart in CHARTS if chart(_figure(_SIZE), files)]
    rows = max(1, -(-len(charts) // 2))
    figure = _figure((2 * _SIZE[0], rows * _SIZE[1]))
    figure.suptitle(title, fontsize=15, fontweight="bold")
    places = figure.subfigures(rows, 2, squeeze=False).flat
    for place, (name, chart) in zip(places, charts, strict=False):
        place.suptitle(name, x=0.02, ha="left", fontsize=12, fontweight="bold")
        chart(place, files)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, facecolor="white")
    return out.getvalue()


def _figure(size: tuple[float, float]) -> Figure:
    """A figure that belongs to no window and to no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Permanent(
            "the report needs matplotlib, which is not installed", hint="pip install 'dflashctl[report]'"
        ) from error
    return Figure(figsize=size, layout="constrained")


def _axes(figure: FigureBase) -> Axes:
    axes = figure.add_subplot()
    styled(axes)
    return axes


def _svg(figure: Figure) -> str:
    """The figure as an SVG element to put into a page: text stays text, and the same data gives the same bytes."""
    from matplotlib import rc_context

    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "dflashctl", "font.family": ["sans-serif"]}):
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    text = out.getvalue()
    return text[text.index("<svg") :]


def _ecdf(axes: Axes, lines: tuple[series.Line, ...], label: str, *, logarithmic: bool = True) -> bool:
    draw_lines(axes, lines, marks=False, steps=True)
    if logarithmic:
        _logarithmic(axes, lines)
    axes.set_xlabel(label)
    axes.set_ylabel("share of requests")
    axes.set_ylim(0, 1.02)
    return bool(lines)


def _logarithmic(axes: Axes, lines: tuple[series.Line, ...]) -> None:
    """A logarithmic axis where values spread enough for one; labels at 1, 2, 3 and 5, or 1 alone, as more overlap."""
    values = [x for line in lines for x, _ in line.points if x > 0]
    if not values or max(values) < _LEAST_SPREAD * min(values):
        return
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    between = _LABELLED if max(values) < _MOST_LABELLED * min(values) else frozenset()
    axes.xaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:e}"[:3] in between else "")
    axes.tick_params(axis="x", which="both", labelsize=8)


def _timeline(axes: Axes, lines: tuple[series.Line, ...], label: str, *, from_zero: bool = True) -> bool:
    draw_lines(axes, lines, marks=False)
    axes.set_xlabel("seconds, runs one after the other")
    axes.set_ylabel(label)
    axes.margins(y=0.1)
    if from_zero:
        axes.set_ylim(bottom=0)
    return bool(lines)
