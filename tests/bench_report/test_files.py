"""Result files: the contract's keys, the schema, appending, and the exports."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
from pathlib import Path

import jsonschema
import pytest

import dflashctl
from dflashctl.commands.bench_save import existing, read_document, save, write_text
from dflashctl.core.bench_export import to_bench_serving, to_csv
from dflashctl.core.bench_options import parse_sweep
from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.report import to_json
from dflashctl.core.run_view import read_run_file
from tests.bench_report.made_runs import result, run_file, spread

SCHEMA = json.loads((Path(dflashctl.__file__).parent / "schemas" / "bench-result.schema.json").read_text())
CONTRACT = ("dataset", "block_size", "concurrency", "requests", "errors", "accept_length", "output_tokens_per_s",
            "per_request_tokens_per_s", "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "client")  # fmt: skip


def test_a_result_has_the_contract_s_keys_and_keeps_to_the_schema():
    document = to_json(result(spread(20), spread(20, speculation=False)))
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    for made in document["runs"]:
        assert set(CONTRACT) <= set(made)
        assert set(made["ttft_ms"]) == {"mean", "p50", "p90", "p95", "p99"}
    assert {"mean", "pooled", "completion_weighted", "p10", "p50", "p90", "histogram"} <= set(
        document["runs"][0]["accept_length"]
    )
    assert document["provenance"]["engine_version"] == "0.5.23"


def test_the_schema_refuses_another_shape():
    document = to_json(result(spread(20)))
    del document["runs"][0]["samples"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


def test_runs_are_appended_and_find_their_session(tmp_path):
    path = tmp_path / "runs.json"
    save(path, result(spread(20)), existing(path))
    save(path, result(spread(24)), existing(path))
    file = read_run_file(read_document(path), "runs.json")
    assert [run.session for run in file.runs] == [0, 1]
    assert len(file.sessions) == 2
    assert [round(run.accept_length.mean, 1) for run in file.runs] == [6.0, 5.0]
    jsonschema.Draft202012Validator(SCHEMA).validate(read_document(path))


def test_another_file_is_never_overwritten(tmp_path):
    path = tmp_path / "notes.json"
    path.write_text('{"mine": 1}')
    with pytest.raises(UsageProblem, match="no result file"):
        existing(path)
    assert path.read_text() == '{"mine": 1}'


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="cannot be written"):
        save(tmp_path / "file" / "runs.json", result(spread(20)), None)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ([], "no result file"),
        ({"kind": "x"}, "no result file"),
        ({"kind": "dflashctl bench", "schema_version": 2}, "schema version 2"),
        ({"kind": "dflashctl bench", "schema_version": 1, "runs": [{"label": 3}]}, r"damaged: runs\[0\]"),
    ],
)
def test_what_is_no_result_file_is_refused(document, words):
    with pytest.raises(UsageProblem, match=words):
        read_run_file(document, "x.json")


def test_the_whole_json_output_can_be_read_too():
    whole = {"schema_version": 1, "command": "bench", "data": to_json(result(spread(20)))}
    assert read_run_file(whole, "out.json").runs[0].requests == 40


def test_csv_has_a_row_a_run():
    rows = list(csv.DictReader(io.StringIO(to_csv(run_file(spread(20), spread(20, speculation=False))))))
    assert [row["speculation"] for row in rows] == ["True", "False"]
    assert float(rows[0]["accept_length_mean"]) == pytest.approx(6.03, abs=0.01)
    assert float(rows[0]["ttft_ms_p50"]) == pytest.approx(100.0)


def test_bench_serving_lines_have_its_keys_and_units():
    (line,) = to_bench_serving(run_file(spread(20))).splitlines()
    found = json.loads(line)
    assert found["backend"] == "sglang-oai-chat"
    assert found["completed"] == 40
    assert found["total_output_tokens"] == 40 * 120
    assert found["mean_ttft_ms"] == pytest.approx(100.0)
    assert found["ttfts"][0] == pytest.approx(0.1)
    assert found["output_throughput"] == pytest.approx(found["total_output_tokens"] / found["duration"])


def test_sweeps():
    sweep = parse_sweep(("block_size=8,16 concurrency=1,8", "rate=0.5", "memory.page_size=1,64"))
    assert (sweep.block_sizes, sweep.concurrency, sweep.rates) == ((8, 16), (1, 8), (0.5,))
    assert sweep.servers == (("memory.page_size", ("1", "64")),)
    assert sweep.restarts
    assert not parse_sweep(("concurrency=1,8",)).restarts


@pytest.mark.parametrize(
    "word", ["block_size", "block_size=", "block_size=a", "concurrency=0", "rate=-1", "colour=red"]
)
def test_bad_sweeps_are_refused(word):
    with pytest.raises(UsageProblem):
        parse_sweep((word,))


@pytest.mark.parametrize("through_link", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, through_link):
    """As root, replacing /dev/null would take it away from the whole machine."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    write_text(link if through_link else pipe, "hello")
    assert os.read(reader, 100) == b"hello"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink()
