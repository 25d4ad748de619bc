"""The histogram of drafts kept: a panel a data set, as the lines of several sets would hide each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from dflashctl.report_html.look import MOST_LINES, colour, stroke, styled
from dflashctl.report_html.series import histograms

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

    from dflashctl.core.run_view import RunFile
    from dflashctl.report_html.series import Panel

MOST_PANELS = 12
_SHORT = 16  # characters of a name


def accept_histogram(figure: FigureBase, files: tuple[RunFile, ...]) -> bool:
    """False when no run has a histogram; a server looks the same in every panel."""
    panels = histograms(files)
    servers = tuple(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    if not panels:
        return False
    looks = {name: number for number, name in enumerate(servers[:MOST_LINES])}
    shown = panels[:MOST_PANELS]
    rows = math.ceil(math.sqrt(len(shown) / 2))
    columns = -(-len(shown) // rows)
    places = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for axes, panel in zip(places, shown, strict=False):
        _draw(axes, panel, looks)
    places[0].set_ylim(bottom=0)  # shared, and it ends autoscaling: only when all panels are drawn
    for axes in places[len(shown) :]:
        axes.set_axis_off()
    for axes in places[len(shown) - columns : len(shown)]:
        axes.tick_params(labelbottom=True)  # nothing stands below these
    cut = (("sets", len(panels), MOST_PANELS), ("servers", len(servers), MOST_LINES))
    notes = [f"the first {most} of {count} {word}" for word, count, most in cut if count > most]
    figure.supxlabel("; ".join(("drafts kept by a verify step", *notes)), fontsize=10)
    figure.supylabel("share of verify steps", fontsize=10)
    _legend(figure, places)
    return True


def _draw(axes: Axes, panel: Panel, looks: dict[str, int]) -> None:
    styled(axes)
    for line in panel.lines:
        number = looks.get(line.name)
        if number is not None:
            edges = [point[0] - 0.5 for point in line.points] + [line.points[-1][0] + 0.5]
            axes.stairs(
                [point[1] for point in line.points],
                edges,
                label=line.name,
                color=colour(number),
                linestyle=stroke(number),
                linewidth=1.6,
            )
    axes.set_title(panel.name, fontsize=9)


def _legend(figure: FigureBase, places: list[Axes]) -> None:
    """One for all panels, outside them."""
    found = {
        label: handle
        for axes in places
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    columns = 2 if max(map(len, found), default=0) <= _SHORT else 1  # the chart's title stands to the left
    figure.legend(
        found.values(), found.keys(), loc="outside upper right", ncols=columns, fontsize=8, frameon=False
    )
