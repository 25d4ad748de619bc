"""The report: one file, nothing loaded from outside, every chart that has data, everything escaped."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache

import pytest

from dflashctl.core.bench_runs import Speedup
from dflashctl.report_html import html_report, png_report
from dflashctl.report_html.series import accept_bars, against_concurrency, ecdfs, gpu_lines, histograms
from tests.bench_report.made_runs import ORIGIN, run_file, spread

pytest.importorskip("matplotlib")


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
    lines = against_concurrency(files, lambda run: run.output_tokens_per_s)
    assert [line.name for line in lines] == ["gsm8k, block 8", "gsm8k, no speculation"]
    assert [x for x, _ in lines[0].points] == [1.0, 8.0]
    assert len(ecdfs(files, lambda run: run.samples.ttft_ms)) == 4
    assert ecdfs(files, lambda run: run.samples.ttft_ms)[0].points[-1][1] == 1.0
    assert histograms(files)[0].points[1][1] == pytest.approx(0.95, abs=0.01)
    (gpu,) = gpu_lines(files, "power_w")
    assert gpu.points[0] == (0.0, 500.0)
    assert [x for x, _ in gpu.points] == sorted(x for x, _ in gpu.points)


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_chromium_draws_the_page(tmp_path):
    page = tmp_path / "report.html"
    page.write_text(page_of_all(), encoding="utf-8")
    argv = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    shown = subprocess.run(
        [*argv, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout.count("<figure>") == 12
