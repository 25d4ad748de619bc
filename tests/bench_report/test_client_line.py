"""The load generator says of every run how it did itself, in every output."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

import dflashctl
from dflashctl.core.bench_export import to_csv
from dflashctl.core.bench_result import ClientFigures
from dflashctl.core.client_line import client_line, worst_client
from dflashctl.core.report import Report, to_json
from dflashctl.core.run_view import ClientView, read_run_file
from dflashctl.ui.text import show
from tests.bench_report.made_runs import result, run_file, spread

SCHEMA = json.loads((Path(dflashctl.__file__).parent / "schemas" / "bench-result.schema.json").read_text())
QUIET = ClientFigures(cpu_share=0.08, loop_lag_ms_p99=0.11, connect_ms_p50=0.31, backlog_bytes_max=600)
BUSY = ClientFigures(
    cpu_share=0.62, loop_lag_ms_p99=0.05, late_sends=3, processes=4, reconnects=2, backlog_bytes_max=12_288
)
QUIET_LINE = "8% of a core, loop lag p99 0.1 ms, 0 late, connect 0.3 ms"
BUSY_LINE = (
    "4 processes, the busiest 62% of a core, loop lag p99 0.1 ms, 3 late, 2 reconnects, backlog 12 KiB"
)


def by(client: ClientFigures | None, concurrency: int = 1):
    measured = spread(20, concurrency=concurrency)
    return replace(measured, summary=replace(measured.summary, client=client))


def seen(*runs) -> list[str]:
    out = io.StringIO()
    show(Report(command="bench", data=result(*runs)), out=out, err=io.StringIO())
    return [line for line in out.getvalue().splitlines() if "client" in line]


@pytest.mark.parametrize(("client", "line"), [(QUIET, QUIET_LINE), (BUSY, BUSY_LINE)])
def test_the_screen_and_the_page_have_its_line(client, line):
    measured = by(client)
    assert client_line(client) == line
    assert seen(measured) == [f"{measured.setting.label}: client: {line}"]
    pytest.importorskip("matplotlib")
    from dflashctl.report_html import html_report

    assert f"client: {line}" in html_report((run_file(measured),), "t", "now")


def test_a_sweep_has_one_line_for_the_worst_of_its_runs():
    runs = [by(client, concurrency=2**n) for n, client in enumerate((QUIET, BUSY, None, QUIET, QUIET))]
    assert len(seen(*runs[:4])) == 3
    worst = worst_client([QUIET, BUSY, QUIET, QUIET])
    assert asdict(worst) == {
        name: max(value for value in (getattr(QUIET, name), getattr(BUSY, name)) if value is not None)
        for name in asdict(QUIET)
    }
    assert seen(*runs) == [f"client, at worst of 4 runs: {client_line(worst)}"]


def test_every_figure_is_in_the_file_and_in_the_table():
    names = {item.name for item in fields(ClientFigures)}
    document = to_json(result(by(BUSY)))
    assert set(document["runs"][0]["client"]) == names == set(SCHEMA["$defs"]["client"]["properties"])
    assert {item.name for item in fields(ClientView)} == names
    (cells,) = csv.DictReader(io.StringIO(to_csv(run_file(by(BUSY)))))
    for name in names:
        value = getattr(BUSY, name)
        assert cells[f"client_{name}"] == ("" if value is None else str(value))


def test_a_file_of_an_older_release_tells_what_it_has():
    document = to_json(result(by(QUIET)))
    document["runs"][0]["client"] = {"cpu_share": 0.08, "loop_lag_ms_p99": 0.11}
    (old,) = read_run_file(document, "old.json").runs
    assert client_line(old.client) == "8% of a core, loop lag p99 0.1 ms, 0 late"
