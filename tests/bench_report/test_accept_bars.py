"""The bars of accept length: each run is shown, and the published figure beside it wherever it stands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.bench_runs import Speedup
from dflashctl.core.expectations import Expectation, FigureVerdict
from tests.bench_report.made_runs import run_file, spread

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from dflashctl.report_html import html_report
from dflashctl.report_html.charts import accept_by_set
from dflashctl.report_html.over_load import FIGURES, LOADS, figure_over_load
from dflashctl.report_html.series import accept_bars, accept_ecdfs, histograms, over_load


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


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ([{}], ["block 8"]),
        ([{}, {}, {}], ["block 8", "block 8, pass 2", "block 8, pass 3"]),
        ([{"max_tokens": 4}, {"max_tokens": 64}], ["block 8, max tokens 4", "block 8, max tokens 64"]),
        ([{"temperature": 0.0}, {"temperature": None}], ["block 8, temperature 0", "block 8, temperature default"]),
        ([{"thinking": True}, {"thinking": False}], ["block 8, thinking on", "block 8, thinking off"]),
        ([{"prompts": 8}, {"prompts": 9}, {"prompts": 9}],
         ["block 8, prompts 8", "block 8, prompts 9", "block 8, prompts 9, pass 2"]),
        ([{"dataset": "a", "max_tokens": 4}, {"dataset": "b", "max_tokens": 64}], ["block 8", "block 8"]),
        ([{"concurrency": 8}, {"concurrency": 1}], ["block 8"]),
        ([{"concurrency": 8}, {"concurrency": None, "request_rate": 0.5}], ["block 8"]),
        ([{"block_size": 8}, {"block_size": 16}], ["block 8", "block 16"]),
    ],
    ids=str,
)  # fmt: skip
def test_each_run_in_the_lowest_load_is_shown_and_told_apart(changes, names):
    file = run_file(*(spread(20, **{"concurrency": 4, **change}) for change in changes))
    assert [bar.series for bar in accept_bars((file,))] == names
    assert [line.name for panel in histograms((file,)) for line in panel.lines] == names
    told = [line.name for line in accept_ecdfs((file,))]
    assert len(told) == len(set(told)) == len(changes)
    assert all("c4" in name or "c1" in name or "c8" in name or "0.5/s" in name for name in told)


def test_the_bar_is_of_the_lowest_load():
    by_rate = spread(24, concurrency=None, request_rate=0.5)
    for order in (
        (spread(30, concurrency=8), spread(20), by_rate),
        (by_rate, spread(20), spread(30, concurrency=8)),
    ):
        (bar,) = accept_bars((run_file(*order),))
        assert bar.value == pytest.approx(6.03, abs=0.01)


def test_the_same_file_twice_is_told_apart():
    file = run_file(spread(20), name="h.json")
    assert [bar.series for bar in accept_bars((file, file))] == ["h.json: block 8", "h.json: block 8, pass 2"]
    assert len({line.name for line in accept_ecdfs((file, file))}) == 2


@pytest.mark.parametrize(
    ("chart", "load"), [(f, load) for f in FIGURES for load in LOADS], ids=lambda x: x.title
)
def test_every_load_has_its_chart(chart, load):
    loads = {"concurrency": ({"concurrency": 2}, {"concurrency": 8}),
             "request rate": ({"concurrency": None, "request_rate": 0.5}, {"concurrency": None, "request_rate": 4.0})}  # fmt: skip
    runs = [
        replace(spread(20, **change), speedup=Speedup(per_request=None, aggregate=2.0))
        for change in loads[load.title]
    ]
    axes = Figure(layout="constrained").add_subplot()
    assert figure_over_load(axes, (run_file(*runs),), chart, load)
    (line,) = [line for line in axes.lines if not line.get_label().startswith("_")]
    assert list(line.get_xdata()) == ([2, 8] if load.title == "concurrency" else [0.5, 4.0])
    other = next(another for another in LOADS if another is not load)
    assert not figure_over_load(Figure().add_subplot(), (run_file(*runs),), chart, other)


def test_answers_asked_for_otherwise_lie_on_no_common_line():
    runs = [spread(20, concurrency=c, max_tokens=limit) for limit in (4, 64) for c in (1, 8)]
    lines = over_load((run_file(*runs),), lambda run: run.output_tokens_per_s, lambda s: s.concurrency)
    assert [line.name for line in lines] == ["gsm8k, block 8, max tokens 4", "gsm8k, block 8, max tokens 64"]
    other_counts = run_file(spread(20), spread(20, concurrency=8, prompts=80))
    (line,) = over_load((other_counts,), lambda run: run.output_tokens_per_s, lambda s: s.concurrency)
    assert [x for x, _ in line.points] == [1, 8]


def test_a_warning_says_which_of_the_runs_it_is_about():
    runs = [replace(spread(20, max_tokens=limit), warnings=("look out",)) for limit in (4, 64, 64)]
    page = html_report((run_file(*runs),), "t", "now")
    for what in ("max tokens 4", "max tokens 64", "max tokens 64, pass 2"):
        assert page.count(f"<li>gsm8k, block 8, c1, {what}: look out</li>") == 1
