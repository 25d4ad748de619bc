"""The histogram of drafts kept: every set and server is drawn and told apart, or a note says what is not."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from tests.bench_report.made_runs import record, run, run_file, spread

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from dflashctl.report_html.charts import accept_by_set
from dflashctl.report_html.histogram import MOST_PANELS, accept_histogram
from dflashctl.report_html.look import MOST_LINES

KIMI_K3 = ("gsm8k", "math500", "humaneval", "humaneval-long", "mbpp", "mt-bench", "longbench-v2")


def drawn(*files) -> Figure:
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    assert accept_histogram(figure, files)
    FigureCanvasAgg(figure).draw()
    return figure


def looks(figure: Figure) -> list[list[tuple]]:
    """(colour, stroke) of the lines of each panel that has any."""
    panels = [[patch for patch in axes.patches if isinstance(patch, StepPatch)] for axes in figure.axes]
    return [[(patch.get_edgecolor(), patch.get_linestyle()) for patch in panel] for panel in panels if panel]


def runs(sets, blocks, **changes):
    return run_file(
        *(spread(20, dataset=name, block_size=block, **changes) for name in sets for block in blocks)
    )


@pytest.mark.parametrize(
    ("sets", "blocks", "note"),
    [
        (("gsm8k",), (8,), ""),
        (("gsm8k",), (8, 16), ""),
        (("gsm8k", "math500", "mbpp"), (8, 16), ""),
        (KIMI_K3, (8, 16), ""),
        (("gsm8k",), range(2, 2 + MOST_LINES), ""),
        (("gsm8k",), range(2, 4 + MOST_LINES), f"the first {MOST_LINES} of {MOST_LINES + 2} servers"),
        ([f"set-{i}" for i in range(MOST_PANELS)], (8,), ""),
        ([f"set-{i}" for i in range(MOST_PANELS + 3)], (8,), f"the first {MOST_PANELS} of {MOST_PANELS + 3} sets"),
    ],
)  # fmt: skip
def test_every_line_is_drawn_and_told_apart_or_a_note_says_so(sets, blocks, note):
    figure = drawn(runs(sets, blocks))
    panels = looks(figure)
    assert len(panels) == min(len(sets), MOST_PANELS)
    assert {axes.get_title() for axes in figure.axes} - {""} == set(sets[:MOST_PANELS])
    for panel in panels:
        assert len(panel) == len(set(panel)) == min(len(blocks), MOST_LINES)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [f"block {b}" for b in blocks][:MOST_LINES]
    assert figure.get_supxlabel() == "; ".join(filter(None, ("drafts kept by a verify step", note)))


def test_a_server_looks_the_same_in_every_panel_even_where_another_is_missing():
    figure = drawn(run_file(spread(20, dataset="a"), spread(20, dataset="a", block_size=16),
                            spread(20, dataset="b", block_size=16)))  # fmt: skip
    (_, of_a), (of_b,) = looks(figure)
    assert of_a == of_b


def test_files_are_lines_of_their_own():
    one, other = (run_file(spread(20), name=name) for name in ("a.json", "b.json"))
    figure = drawn(one, other)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "a.json: block 8",
        "b.json: block 8",
    ]


def test_without_a_histogram_there_is_no_chart():
    silent = run([record(i, steps=None) for i in range(4)])
    assert not accept_histogram(Figure(), (run_file(silent),))


def test_names_of_sets_do_not_touch():
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    assert accept_by_set(axes, (runs(KIMI_K3, (8, 16)),))
    FigureCanvasAgg(figure).draw()
    for one, next_one in pairwise(text.get_window_extent() for text in axes.get_xticklabels()):
        assert one.x1 < next_one.x0


def kept(shares, dataset):
    """A run whose verify steps kept drafts as `shares` say."""
    made = spread(20, dataset=dataset)
    accept = replace(made.summary.accept_length, histogram=shares)
    return replace(made, summary=replace(made.summary, accept_length=accept))


@pytest.mark.parametrize("first", [(0.5, 0.5), (0.08, 0.92)], ids=str)
@pytest.mark.parametrize("last", [(0.5, 0.5), (0.08, 0.92)], ids=str)
def test_no_peak_runs_out_of_its_panel(first, last):
    figure = drawn(run_file(kept(first, "a"), kept(last, "b")))
    for axes in figure.axes:
        low, high = axes.get_ylim()
        peaks = [max(patch.get_data().values) for patch in axes.patches]
        assert low == 0
        assert all(peak < high for peak in peaks)
