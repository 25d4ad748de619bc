"""How lines look: told apart by colour first, by stroke once the colours have run out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette: told apart by colour-blind readers and in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#999999", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
MOST_LINES = 12


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def stroke(number: int) -> str:
    return "solid" if number < len(COLOURS) else "dashed"


def styled(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
