"""The report: one file, nothing loaded from outside, every chart that has data, everything escaped."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache

import pytest

from dflashctl.core.bench_export import to_csv
from dflashctl.core.bench_runs import Speedup
from dflashctl.report_html import html_report, png_report
from dflashctl.report_html.series import accept_bars, ecdfs, gpu_lines, histograms, over_load
from tests.bench_report.made_runs import ORIGIN, SETTING, run_file, spread

pytest.importorskip("matplotlib")


def in_flight(setting):
    return setting.concurrency


@cache
def page_of_all() -> str:
    return html_report((full(),), "A title", "2026-11-30")


@cache
def full():
    loads = [spread(20, concurrency=c) for c in (1, 8)]
    plain = [spread(60, concurrency=c, speculation=False) for c in (1, 8)]
    return run_file(*(replace(run, speedup=Speedup(per_request=2.0, aggregate=1.5)) for run in loads), *plain)


def test_the_page_is_self_contained_and_names_every_chart():
    page = page_of_all()
    assert not re.search(r"<script|<link|<img|@import|url\(", page.replace("url(#", ""))
    for outside in re.findall(r'(?:src|href)="?(https?:[^"> ]+)', page):
        assert outside.startswith(("http://www.w3.org/", "http://purl.org/", "https://matplotlib.org")), (
            outside
        )
    for chart in (
        "Accept length by data set",
        "Drafts kept",
        "Throughput",
        "Speed-up",
        "Distribution of TTFT",
        "GPU power",
    ):
        assert chart in page
    assert page.count("<svg") == 12
    assert "6.03" in page


def test_charts_without_data_are_left_out():
    page = html_report((run_file(replace(spread(20), gpu_readings=())),), "t", "now")
    assert "GPU power" not in page
    assert "Throughput against concurrency" not in page


def test_texts_from_outside_are_escaped():
    origin = replace(ORIGIN, url="x", profile="<script>alert(1)</script>")
    page = html_report((run_file(spread(20), origin=origin),), "<b>title</b>", "now")
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<b>title</b>" not in page


def test_the_same_runs_give_the_same_bytes():
    assert html_report((full(),), "A title", "2026-11-30") == page_of_all()


def test_the_picture_is_a_png():
    assert png_report((full(),), "t").startswith(b"\x89PNG\r\n")


def test_series():
    files = (full(),)
    (bar,) = accept_bars(files)
    assert (bar.group, bar.series) == ("gsm8k", "block 8")
    assert bar.low < bar.value < bar.high
    lines = over_load(files, lambda run: run.output_tokens_per_s, in_flight)
    assert [line.name for line in lines] == ["gsm8k, block 8", "gsm8k, no speculation"]
    assert [x for x, _ in lines[0].points] == [1.0, 8.0]
    assert len(ecdfs(files, lambda run: run.samples.ttft_ms)) == 4
    assert ecdfs(files, lambda run: run.samples.ttft_ms)[0].points[-1][1] == 1.0
    (panel,) = histograms(files)
    assert panel.lines[0].points[1][1] == pytest.approx(0.95, abs=0.01)
    (gpu,) = gpu_lines(files, "power_w")
    assert gpu.points[0] == (0.0, 500.0)
    assert [x for x, _ in gpu.points] == sorted(x for x, _ in gpu.points)


PATH = "memory.max_running_requests"
OTHER = "scheduling.max_running_requests"


@cache
def swept():
    """Two servers that differ in one profile path, each in two loads, with and without speculation."""
    return run_file(
        *(
            spread(steps, concurrency=c, overrides=((PATH, value),), **changes)
            for steps, value in ((20, "1"), (24, "8"))
            for c in (1, 8)
            for changes in ({}, {"speculation": False})
        )
    )


@pytest.mark.parametrize(
    "names",
    [
        lambda files: [
            line.name for line in over_load(files, lambda run: run.output_tokens_per_s, in_flight)
        ],
        lambda files: [f"{panel.name}, {line.name}" for panel in histograms(files) for line in panel.lines],
    ],
)
def test_servers_of_a_swept_path_are_lines_of_their_own(names):
    found = names((swept(),))
    for value in "18":
        assert f"gsm8k, block 8, max_running_requests {value}" in found
    assert len(found) == len(set(found))


def test_servers_of_a_swept_path_are_told_apart_wherever_they_stand():
    assert {bar.series for bar in accept_bars((swept(),))} == {
        f"block 8, max_running_requests {value}" for value in "18"
    }
    page = html_report((swept(),), "t", "now")
    assert "<td class='left'>block 8, max_running_requests 1</td>" in page
    assert "<td class='left'>no speculation, max_running_requests 8</td>" in page
    rows = list(csv.DictReader(io.StringIO(to_csv(swept()))))
    assert [row["overrides"] for row in rows] == [f"{PATH}=1"] * 4 + [f"{PATH}=8"] * 4
    labels = [run.label for run in swept().runs]
    assert len(labels) == len(set(labels))


def test_paths_with_the_same_last_word_are_named_in_full():
    setting = replace(SETTING, overrides=((PATH, "1"), (OTHER, "1"), ("memory.page_size", "64")))
    assert setting.settings == (f"{PATH} 1", f"{OTHER} 1", "page_size 64")


def test_a_load_that_was_measured_again_is_another_line():
    file = run_file(*(spread(steps, concurrency=c) for steps in (20, 24) for c in (1, 8)))
    lines = over_load((file,), lambda run: run.accept_length.mean, in_flight)
    assert [line.name for line in lines] == ["gsm8k, block 8", "gsm8k, block 8, pass 2"]
    assert [round(line.points[0][1]) for line in lines] == [6, 5]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_chromium_draws_the_page(tmp_path):
    page = tmp_path / "report.html"
    page.write_text(page_of_all(), encoding="utf-8")
    argv = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    shown = subprocess.run(
        [*argv, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout.count("<figure>") == 12
