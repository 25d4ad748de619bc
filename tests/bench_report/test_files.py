"""Result files: the contract's keys, the schema, appending, and the exports."""

from __future__ import annotations

import csv
import io
import json
import os
import stat
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import dflashctl
from dflashctl.commands.bench_report import bench_report
from dflashctl.commands.bench_save import existing, read_document, save, write_text
from dflashctl.commands.bench_verdict import refuse_file_clashes, report_of
from dflashctl.commands.output_files import refuse_clashes
from dflashctl.core.bench_export import to_csv
from dflashctl.core.bench_options import BenchOptions, Gates, parse_sweep
from dflashctl.core.bench_runs import Speedup, Unfinished
from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.expectations import Expectation, FigureVerdict
from dflashctl.core.report import to_json
from dflashctl.core.run_view import read_run_file
from dflashctl.env import Env
from tests.bench_report.made_runs import ORIGIN, record, result, run, run_file, spread, withheld

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


WHOLE = {"unfinished": "", "withheld": "", "turns_without_counts": "0", "warnings": "", "verdict": ""}
BELOW = Expectation(
    metric="accept_length", published=9.0, measured=6.0, interval=None, verdict=FigureVerdict.BELOW
)


@pytest.mark.parametrize(
    ("measured", "told"),
    [
        (spread(20), {}),
        (replace(spread(20), unfinished=Unfinished.MAX_DURATION), {"unfinished": "max_duration"}),
        (replace(spread(20), unfinished=Unfinished.INTERRUPTED), {"unfinished": "interrupted"}),
        (withheld(spread(20)), {"withheld": "the loop lagged"}),
        (replace(spread(20), warnings=("a, b", "c")), {"warnings": "a, b; c"}),
        (replace(spread(20), expectations=(BELOW,)), {"verdict": "accept_length=below"}),
        (run([record(i, steps=20 if i else None) for i in range(4)]), {"turns_without_counts": "1"}),
    ],
    ids=("whole", "max_duration", "interrupted", "withheld", "warnings", "verdict", "counts"),
)
def test_csv_tells_what_is_amiss_with_a_run(measured, told):
    (row,) = csv.DictReader(io.StringIO(to_csv(run_file(measured))))
    assert {name: row[name] for name in WHOLE} == {**WHOLE, **told}
    assert list(row)[-len(WHOLE) :] == list(WHOLE)  # behind the columns that there were


def test_csv_of_a_file_that_does_not_tell_is_empty_there():
    document = to_json(result(spread(20)))
    del document["runs"][0]["turns_without_counts"]
    (row,) = csv.DictReader(io.StringIO(to_csv(read_run_file(document, "old.json"))))
    assert row["turns_without_counts"] == ""


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


@pytest.mark.parametrize(
    "array", ["completion_tokens", "verify_steps", "ttft_ms", "tpot_ms", "e2e_ms", "tokens_per_s"]
)
@pytest.mark.parametrize("change", [lambda values: values[:-1], lambda values: [*values, None]])
def test_samples_of_unequal_length_are_damage_with_its_place(array, change):
    document = to_json(result(spread(20), spread(24)))
    samples = document["runs"][1]["samples"]
    samples[array] = change(samples[array])
    with pytest.raises(
        UsageProblem, match=rf"x.json is damaged: runs\[1\]\.samples\.{array}: (39|41) values for 40"
    ):
        read_run_file(document, "x.json")


def test_two_benchmarks_on_one_file_lose_no_run_of_each_other(tmp_path):
    """Saves in turns, as two calls make them: each save brings all runs of its call so far."""
    path = tmp_path / "runs.json"
    mine, theirs = existing(path), existing(path)
    save(path, result(spread(20)), mine)
    save(path, result(spread(24), origin=OTHER), theirs)
    save(path, result(spread(20), spread(30)), mine)
    save(path, result(spread(24), spread(40), origin=OTHER), theirs)
    final = result(replace(spread(20), speedup=Speedup(per_request=2.0, aggregate=2.0)), spread(30))
    save(path, final, mine)
    file = read_run_file(read_document(path), "runs.json")
    found = {
        (round(run.accept_length.mean, 1), file.provenance(run).driver, run.speedup is not None)
        for run in file.runs
    }
    assert found == {
        (6.0, "590.44", True), (4.0, "590.44", False), (5.0, "600", False), (3.0, "600", False),
    }  # fmt: skip
    assert (len(file.runs), len(file.sessions)) == (4, 2)
    assert [p.name for p in tmp_path.iterdir()] == ["runs.json"]


OTHER = replace(ORIGIN, driver="600")
SAVER = """
import sys
from pathlib import Path
from dflashctl.commands.bench_save import existing, save
from tests.bench_report.made_runs import result, spread
path = Path(sys.argv[1])
kept = existing(path)
for n in range(1, 6):
    save(path, result(*(spread(20, seed=int(sys.argv[2]) + i) for i in range(n))), kept)
"""


def test_saves_at_the_same_time_lose_nothing(tmp_path):
    path = tmp_path / "runs.json"
    argv = [sys.executable, "-c", SAVER, str(path)]
    root = Path(__file__).resolve().parent.parent.parent
    both = [subprocess.Popen([*argv, str(start)], cwd=root) for start in (100, 200, 300)]
    assert [process.wait(60) for process in both] == [0, 0, 0]
    file = read_run_file(read_document(path), "runs.json")
    assert sorted(run.setting.seed for run in file.runs) == [
        start + i for start in (100, 200, 300) for i in range(5)
    ]
    assert len(file.sessions) == 3


def test_a_file_that_became_something_else_meanwhile_is_left_alone(tmp_path):
    path = tmp_path / "runs.json"
    kept = existing(path)
    path.write_text('{"mine": 1}')
    with pytest.raises(UsageProblem, match="no result file"):
        save(path, result(spread(20)), kept)
    assert path.read_text() == '{"mine": 1}'


def linked(folder: Path) -> None:
    (folder / "a.json").write_text("{}")
    (folder / "soft.json").symlink_to("a.json")
    (folder / "hard.json").hardlink_to(folder / "a.json")
    (folder / "new.json").symlink_to("later.json")


@pytest.mark.parametrize(
    ("outputs", "inputs", "refused"),
    [
        ({"-o": "r.json", "--csv": "r.csv"}, (), False),
        ({"-o": "r.json", "--csv": "r.json"}, (), True),
        ({"-o": "r.json", "--csv": "./x/../r.json"}, (), True),
        ({"-o": "later.json", "--csv": "new.json"}, (), True),
        ({"-o": "a.json", "--csv": "soft.json"}, (), True),
        ({"-o": "a.json", "--csv": "hard.json"}, (), True),
        ({"-o": "a.json", "--csv": None}, ("soft.json",), True),
        ({"-o": "hard.json"}, ("a.json",), True),
        ({"-o": "r.html"}, ("a.json", "soft.json"), False),
        ({"-o": None}, (None, "a.json"), False),
    ],
)
def test_no_output_destroys_an_input_or_another_output(tmp_path, outputs, inputs, refused):
    linked(tmp_path)
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    with pytest.raises(UsageProblem, match="would overwrite") if refused else nullcontext():
        refuse_clashes(env, outputs, inputs)


@pytest.mark.parametrize(
    ("options", "refused"),
    [
        (BenchOptions(output="r.json", csv="r.json"), True),
        (BenchOptions(output="r.json", jsonl="r.json"), True),
        (BenchOptions(csv="x", jsonl="x"), True),
        (BenchOptions(prompts="p.jsonl", jsonl="p.jsonl"), True),
        (BenchOptions(prompts="p.jsonl", output="p.jsonl"), True),
        (BenchOptions(csv="before.json", gates=Gates(against="before.json")), True),
        (BenchOptions(output="before.json", gates=Gates(against="before.json")), False),
    ],
)
def test_bench_refuses_files_that_it_would_destroy(tmp_path, options, refused):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    with pytest.raises(UsageProblem, match="would overwrite") if refused else nullcontext():
        refuse_file_clashes(env, options, options.output or "new.json")


@pytest.mark.parametrize(
    "asked", [{"output": "a.json"}, {"output": "r.html", "png": "r.html"}, {"png": "x/../a.json"}]
)
def test_a_report_never_overwrites_what_it_reads(tmp_path, asked):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    save(tmp_path / "a.json", result(spread(20)))
    before = (tmp_path / "a.json").read_bytes()
    with pytest.raises(UsageProblem, match="would overwrite"):
        bench_report(env, ("a.json",), **asked)
    assert [(p.name, p.read_bytes()) for p in tmp_path.iterdir()] == [("a.json", before)]


def test_exports_of_a_later_call(tmp_path):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    options = BenchOptions(csv="r.csv", jsonl="r.jsonl")
    for _ in range(2):
        report_of(env, options, result(spread(20)), tmp_path / "r.json", None)
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 2  # appended, as bench_serving does it
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 2  # one header, one run


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


@pytest.mark.parametrize("name", ["a.jpg", "a", "a.svg", "a.png.txt", ".png"])
def test_a_picture_goes_into_no_file_of_another_kind(tmp_path, name):
    (tmp_path / "run.json").write_text(json.dumps(to_json(result(spread(20)))))
    with pytest.raises(UsageProblem, match="the picture is a PNG"):
        bench_report(Env(cwd=tmp_path, environ={}), ("run.json",), output="r.html", png=name)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
