"""A run that its client spoiled: nothing that hangs on time is told of it, wherever it is shown; counts stay."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest

from dflashctl.commands.bench_verdict import report_of, with_speedups
from dflashctl.core.bench_compare import compare
from dflashctl.core.bench_export import to_csv
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_result import summarise
from dflashctl.core.bench_serving_lines import to_bench_serving
from dflashctl.core.goodput import Slo
from dflashctl.core.report import to_json
from dflashctl.env import Env
from dflashctl.ui.text import show
from tests.bench_report.made_runs import record, result, run, run_file, spread, withheld

SLOW = withheld(spread(20))
PLAIN = spread(60, speculation=False)
TIMINGS = ("_ms", "_per_s", "goodput")


def test_no_figure_that_hangs_on_time_is_left():
    records = [record(i) for i in range(8)]
    sound = summarise(records, None, slo=Slo(ttft_ms=150.0))
    spoiled = withheld(run(records)).summary
    timed = {name for name in to_json(sound) if name.endswith(TIMINGS)}
    assert {"output_tokens_per_s", "steady_output_tokens_per_s", "requests_per_s", "goodput"} <= timed
    assert {
        name: value for name, value in to_json(spoiled).items() if name in timed and value is not None
    } == {}
    assert {name.partition(".")[0] for name in spoiled.intervals} == {"accept_length"}
    assert (spoiled.accept_length, spoiled.completion_tokens) == (
        sound.accept_length,
        sound.completion_tokens,
    )


@pytest.mark.parametrize("runs", [(SLOW, PLAIN), (spread(20), withheld(PLAIN))], ids=["run", "baseline"])
def test_what_is_not_known_makes_no_speedup_and_no_warning_of_a_slow_one(runs, tmp_path):
    judged = with_speedups(list(runs))
    assert [made.speedup for made in judged] == [None, None]
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    report = report_of(env, BenchOptions(), result(*judged), tmp_path / "r.json", None)
    assert {finding.id for finding in report.findings} == {"bench.slow_client"}
    assert report.exit_code == 1


def test_every_output_leaves_the_figures_out(tmp_path):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    out = io.StringIO()
    show(report_of(env, BenchOptions(), result(SLOW), tmp_path / "r.json", None), out=out, err=out)
    (row,) = [line for line in out.getvalue().splitlines() if line.startswith("gsm8k ")]
    assert row.split()[-5:] == ["-"] * 5
    assert "latencies and rates withheld: the loop lagged" in out.getvalue()
    (cells,) = csv.DictReader(io.StringIO(to_csv(run_file(SLOW))))
    assert {cells[name] for name in cells if name.endswith(("_per_s", "_ms_p50", "_per_s_p50"))} == {""}
    line = json.loads(to_bench_serving(run_file(SLOW)))
    assert {line[name] for name in line if name.endswith(("_throughput", "_ms"))} == {None}
    (pair,) = compare(run_file(SLOW), run_file(spread(24))).pairs
    assert [change.metric for change in pair.changes] == ["accept_length.mean"]


def test_the_report_page_leaves_them_out():
    pytest.importorskip("matplotlib")
    from dflashctl.report_html import html_report

    loads = [withheld(spread(20, concurrency=c)) for c in (1, 8)]
    page = html_report((run_file(*loads),), "t", "now")
    rows = [re.findall("<td[^>]*>(.*?)</td>", row) for row in re.findall("<tr>.*?</tr>", page)]
    assert [cells[-6:] for cells in rows if "gsm8k" in cells] == [["-"] * 6] * 2
    assert "Throughput against concurrency" not in page
    assert "the loop lagged" in page
