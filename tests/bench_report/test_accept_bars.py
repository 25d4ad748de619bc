"""The bars of accept length: each run is shown, and the published figure beside it wherever it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.expectations import Expectation, FigureVerdict
from tests.bench_report.made_runs import run_file, spread

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from dflashctl.report_html.charts import accept_by_set


def drawn(*runs):
    axes = Figure(figsize=(7.2, 4.2), layout="constrained").add_subplot()
    assert accept_by_set(axes, (run_file(*runs),))
    return axes


def beside(published: float, verdict: FigureVerdict, **changes):
    """A run of accept length 6.03 beside a published figure."""
    expected = Expectation(
        metric="accept_length", published=published, measured=6.03, interval=None, verdict=verdict
    )
    return replace(spread(20, **changes), expectations=(expected,))


def marks(axes) -> dict[str, tuple[float, str]]:
    """(height, stroke) of the lines that stand for published figures, by their name in the legend."""
    return {
        line.get_label(): (line.get_segments()[0][0][1], str(line.get_linestyle()))
        for line in axes.collections
        if "published" in line.get_label()
    }


@pytest.mark.parametrize("published", [1.5, 6.0, 7.2, 13.529, 60.0])
def test_the_published_figure_is_within_the_picture(published):
    axes = drawn(beside(published, FigureVerdict.BELOW))
    assert marks(axes)["published"][0] == published
    assert published < axes.get_ylim()[1]
    assert axes.get_ylim()[1] > 6.03


def test_a_figure_that_does_not_judge_the_run_is_drawn_otherwise():
    axes = drawn(beside(7.0, FigureVerdict.BELOW), beside(7.0, FigureVerdict.UNLIKE, dataset="mbpp"))
    found = marks(axes)
    assert set(found) == {"published", "published for another setting"}
    assert len({stroke for _, stroke in found.values()}) == 2
