"""Axis labels stay legible: whatever the values span, some are shown and none touch each other."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.bench_report.made_runs import run_file, spread

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dflashctl.report_html.charts import e2e_spread, tpot_spread, ttft_spread


def labels(low: float, high: float, chart) -> list:
    """The extents, in pixels and from left to right, of the labels that a chart of these values shows."""
    made = spread(20)
    values = tuple(low * (high / low) ** (i / 39) for i in range(40))
    samples = replace(made.samples, ttft_ms=values, tpot_ms=values, e2e_ms=values)
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    canvas = FigureCanvasAgg(figure)
    assert chart(axes, (run_file(replace(made, samples=samples)),))
    canvas.draw()
    left, right = axes.get_window_extent().intervalx
    texts = [*axes.get_xticklabels(), *axes.get_xticklabels(minor=True)]
    extents = [text.get_window_extent() for text in texts if text.get_text()]
    return sorted((e for e in extents if left <= (e.x0 + e.x1) / 2 <= right), key=lambda e: e.x0)


@pytest.mark.parametrize("chart", [ttft_spread, tpot_spread, e2e_spread])
@pytest.mark.parametrize(
    ("low", "high"),
    [(0.03, 4), (9, 200), (12.1, 12.9), (95, 105), (1, 10), (20, 75), (0.5, 490), (0.5, 120_000), (7, 7)],
)
def test_labels_are_there_and_do_not_touch(low, high, chart):
    shown = labels(low, high, chart)
    assert len(shown) >= 2
    for one, next_one in pairwise(shown):
        assert one.x1 < next_one.x0
