"""What a person sees of a benchmark and of a comparison."""

from __future__ import annotations

import io
from dataclasses import replace

from dflashctl.core.bench_compare import compare
from dflashctl.core.bench_runs import Speedup
from dflashctl.core.expectations import expectations
from dflashctl.core.profile import Expect, Figure, Sampling
from dflashctl.core.report import Report
from dflashctl.ui.text import show
from tests.bench_report.made_runs import result, run_file, spread

EXPECT = Expect(
    sampling=Sampling(temperature=0.0, max_tokens=4096, thinking=True),
    figures=(
        Figure(metric="accept_length", dataset="gsm8k", value=6.0, block_size=8),
        Figure(metric="output_tokens_per_s", dataset="gsm8k", value=500.0),
    ),
)


def seen(command: str, data: object) -> str:
    out = io.StringIO()
    show(Report(command=command, data=data), out=out, err=io.StringIO())
    return out.getvalue()


def test_a_run_stands_beside_its_published_figure_and_its_baseline():
    measured = spread(20)
    judged = replace(
        measured,
        expectations=expectations(EXPECT, measured.summary, measured.setting),
        speedup=Speedup(per_request=2.5, aggregate=0.9),
    )
    text = seen("bench", result(judged, spread(60, speculation=False)))
    (row,) = [line for line in text.splitlines() if line.startswith("gsm8k") and " 8 " in line]
    assert "6.030 [5." in row
    assert "6 +0.5% reproduced" in row
    assert "x2.50 / x0.90" in row
    assert any(line.startswith("gsm8k") and " none " in line for line in text.splitlines())
    assert "output_tokens_per_s" in text
    assert "completion tokens / verify steps" in text
    assert "run.json" in text


def test_a_setting_that_is_not_the_published_one_is_named():
    measured = spread(20, max_tokens=200)
    judged = replace(measured, expectations=expectations(EXPECT, measured.summary, measured.setting))
    assert "not as published: max_tokens 200, published 4096" in seen("bench", result(judged))


def test_a_comparison_shows_interval_and_verdict():
    text = seen("bench compare", compare(run_file(spread(20), name="a"), run_file(spread(24), name="b")))
    (row,) = [line for line in text.splitlines() if "accept_length.mean" in line]
    assert row.split()[-1] == "worse"
    assert "-16." in row
    assert "the same prompts drawn" in text
