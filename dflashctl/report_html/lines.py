"""Lines in a pair of axes, and the legend that names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.report_html.look import MARKS, MOST_LINES, colour, stroke

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dflashctl.report_html.series import Line


def draw_lines(axes: Axes, lines: tuple[Line, ...], *, marks: bool = True, steps: bool = False) -> None:
    for number, line in enumerate(lines[:MOST_LINES]):
        x, y = [point[0] for point in line.points], [point[1] for point in line.points]
        axes.plot(
            x,
            y,
            label=line.name,
            color=colour(number),
            linestyle=stroke(number),
            marker=MARKS[number % len(MARKS)] if marks else None,
            markersize=5,
            linewidth=1.6,
            drawstyle="steps-post" if steps else "default",
        )
    if len(lines) > MOST_LINES:
        axes.set_title(f"the first {MOST_LINES} of {len(lines)}", loc="right", fontsize=8, color="#777777")
    legend(axes, len(lines))


def legend(axes: Axes, entries: int) -> None:
    """Above the plot, so that it never lies on the data."""
    if entries:
        axes.legend(
            fontsize=8,
            frameon=False,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=2 if entries > 1 else 1,
        )
