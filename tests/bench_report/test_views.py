"""What a person sees of a benchmark and of a comparison."""

from __future__ import annotations

import csv
import importlib
import io
from dataclasses import replace

import pytest
from rich.console import Console

from dflashctl.bench import summarise
from dflashctl.commands.bench_verdict import report_of
from dflashctl.core.bench_compare import compare
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_record import RequestError
from dflashctl.core.bench_runs import Speedup
from dflashctl.core.errors import ExitCode
from dflashctl.core.expectations import expectations
from dflashctl.core.goodput import Slo
from dflashctl.core.profile import Expect, Figure, Sampling
from dflashctl.core.report import Outcome, Report, to_json
from dflashctl.env import Env
from dflashctl.ui.text import show
from dflashctl.ui.theme import THEME
from tests.bench_report.made_runs import record, result, run_file, spread

EXPECT = Expect(
    sampling=Sampling(temperature=0.0, max_tokens=4096, thinking=True),
    figures=(
        Figure(metric="accept_length", dataset="gsm8k", value=6.0, block_size=8),
        Figure(metric="output_tokens_per_s", dataset="gsm8k", value=500.0),
    ),
)


@pytest.fixture
def env(tmp_path):
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


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


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_figure_is_lost_on_a_narrow_terminal(width):
    measured = spread(20)
    judged = replace(
        measured,
        expectations=expectations(EXPECT, measured.summary, measured.setting),
        speedup=Speedup(per_request=2.5, aggregate=0.9),
    )
    data = {
        "bench": result(judged, spread(60, speculation=False)),
        "bench compare": compare(run_file(spread(20), name="a"), run_file(spread(24), name="b")),
    }
    for command, answer in data.items():
        report = Report(command=command, data=answer)
        wide, narrow = (drawn(report, columns) for columns in (400, width))
        assert "\u2026" not in narrow
        words = [word for line in wide.splitlines() for word in line.split()]
        assert set(words) - set(narrow.split()) == set()
        if width >= 80:
            table = [line for line in narrow.splitlines() if line.startswith(("DATA SET", "  FIGURE"))]
            assert all(len(line) <= width for line in table)


def drawn(report: Report, width: int) -> str:
    out = io.StringIO()
    narrow = Console(file=out, width=width, theme=THEME, highlight=False, markup=False)
    for renderable in importlib.import_module(
        f"dflashctl.ui.views.{report.command.replace(' ', '_')}"
    ).render(report):
        narrow.print(renderable)
    return out.getvalue()


SLO = Slo(ttft_ms=150.0, tpot_ms=20.0)


def told_of(records, slo=None):
    return replace(spread(20), summary=replace(summarise(records, None, slo=slo), dataset="gsm8k"))


REMARKS = [
    (told_of([record(i, ttft_s=0.1 if i < 30 else 0.2) for i in range(40)], SLO),
     "goodput: 30 of 40 requests (75.0%) kept TTFT 150 ms, TPOT 20 ms", ("goodput_good", "30")),
    (told_of([replace(record(i), finish_reason="length" if i < 3 else "stop") for i in range(40)]),
     "answers ended with stop 37, length 3", ("finish_reasons", "stop 37, length 3")),
    (told_of([replace(record(i), finish_reason="abort") for i in range(4)]),
     "abort 4", ("finish_reasons", "abort 4")),
    (told_of([replace(record(i), completion_tokens=None) for i in range(4)]),
     "4 answers have no token count", ("doubts", "no_token_count 4")),
    (told_of([replace(record(i), error=RequestError.STATUS, status=503) for i in range(4)]),
     "HTTP 503 4", ("errors_told", "HTTP 503 4")),
]  # fmt: skip


@pytest.mark.parametrize(("measured", "words", "cell"), REMARKS)
def test_what_a_run_says_of_its_answers_stands_in_every_output(env, measured, words, cell):
    report = report_of(env, BenchOptions(csv="r.csv"), result(measured), env.cwd / "r.json", None)
    out = io.StringIO()
    show(report, out=out, err=out)
    assert words in " ".join(out.getvalue().split())
    (row,) = csv.DictReader(io.StringIO((env.cwd / "r.csv").read_text()))
    assert row[cell[0]] == cell[1]
    if measured.samples:
        pytest.importorskip("matplotlib")
        from dflashctl.report_html import html_report

        assert words in html_report((run_file(measured),), "t", "now")


@pytest.mark.parametrize(
    ("failed", "outcome", "code"),
    [
        (0, Outcome.OK, ExitCode.OK),
        (1, Outcome.PARTIAL, ExitCode.OK),
        (25, Outcome.FAILED, ExitCode.CHECK_FAILED),
    ],
)
def test_failed_requests_decide_the_outcome(env, failed, outcome, code):
    bad = [replace(record(i), error=RequestError.CLOSED) for i in range(failed)]
    measured = told_of([*bad, *(record(i) for i in range(failed, 40))])
    report = report_of(env, BenchOptions(), result(measured), env.cwd / "r.json", None)
    assert (report.outcome, report.exit_code) == (outcome, code)


def test_an_earlier_result_is_shown_and_stored_beside_the_new_one(env):
    before = run_file(spread(24), name="before.json")
    report = report_of(env, BenchOptions(), result(spread(20)), env.cwd / "r.json", before)
    assert report.exit_code is ExitCode.OK
    text = seen("bench", report.data)
    assert "A: before.json" in text
    assert "accept_length.mean" in text
    assert to_json(report.data)["comparison"]["pairs"][0]["changes"]


def test_rows_of_a_swept_path_are_told_apart():
    runs = [spread(20, overrides=(("memory.max_running_requests", value),)) for value in "18"]
    text = seen("bench", result(*runs))
    for value in "18":
        assert f"c1, max_running_requests {value}" in text
