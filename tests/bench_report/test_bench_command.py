"""`bench` against the embedded engine: real HTTP, real speculation, real restarts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import dflashctl
from dflashctl.commands.bench import bench
from dflashctl.commands.bench_compare import bench_compare
from dflashctl.commands.bench_report import bench_report
from dflashctl.core.bench_options import BenchOptions, Gates
from dflashctl.core.errors import CheckFailed, ExitCode, NotRunning, UsageProblem
from dflashctl.core.report import envelope
from dflashctl.env import Env
from dflashctl.reference import tiny_paths
from tests.benchmarks.load_generator import read_bench_serving
from tests.fakes.fake_datasets import FakeDataSets
from tests.smoke.reference_server import reference_server
from tests.smoke.scripted_server import serving

SCHEMA = json.loads((Path(dflashctl.__file__).parent / "schemas" / "bench-result.schema.json").read_text())


@pytest.fixture(scope="module")
def url():
    with reference_server(block_size=8) as running:
        yield running


@pytest.fixture
def env(tmp_path):
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


def test_tiny_math_gives_the_recorded_accept_length(env, url, tmp_path):
    report = bench(env, BenchOptions(url=url, output="run.json"))
    (run,) = report.data.runs
    assert run.summary.errors == 0
    assert run.summary.accept_length.mean == pytest.approx(7.330, rel=0.02)
    assert run.cross_check.agrees
    assert run.setting.max_tokens == 200
    document = json.loads((tmp_path / "run.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    assert document["provenance"]["speculative_algorithm"] == "DFLASH"
    data = envelope(report)["data"]
    assert data["runs"][0]["dataset"] == "tiny-math"
    assert data["provenance"]["engine_version"].startswith("reference-")


def test_both_interfaces_count_the_same_request_by_request(env, url):
    target, _ = tiny_paths()
    options = BenchOptions(url=url, count=12, output="a.json")
    (chat,) = bench(env, options).data.runs
    (native,) = bench(env, replace(options, api="generate", tokenizer=str(target), output="b.json")).data.runs
    assert native.samples.ids == chat.samples.ids
    assert native.samples.completion_tokens == chat.samples.completion_tokens
    assert native.samples.verify_steps == chat.samples.verify_steps
    assert None not in chat.samples.verify_steps


def test_a_sweep_of_loads_brings_its_baseline_and_appends(env, url, tmp_path):
    options = BenchOptions(
        url=url, count=8, sweep=("concurrency=1,4",), output="run.json", csv="run.csv", jsonl="run.jsonl"
    )
    report = bench(env, options)
    assert [(r.setting.concurrency, r.setting.speculation) for r in report.data.runs] == [
        (1, True), (4, True), (1, False), (4, False),
    ]  # fmt: skip
    assert all(r.speedup.aggregate > 0 for r in report.data.runs[:2])
    assert all(r.speedup is None and r.summary.accept_length is None for r in report.data.runs[2:])
    assert len((tmp_path / "run.csv").read_text().splitlines()) == 5
    assert len((tmp_path / "run.jsonl").read_text().splitlines()) == 4
    bench(env, BenchOptions(url=url, count=8, output="run.json"))
    assert len(json.loads((tmp_path / "run.json").read_text())["runs"]) == 5


def test_records_make_the_lines_whole_and_leave_texts_out_of_the_file(env, url, tmp_path):
    bench(env, BenchOptions(url=url, count=8, output="run.json", jsonl="run.jsonl", records=True))
    line = json.loads((tmp_path / "run.jsonl").read_text())
    assert all(line["generated_texts"])
    assert line["errors"] == [""] * 8
    assert read_bench_serving(tmp_path / "run.jsonl")["done"] == 8
    document = json.loads((tmp_path / "run.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    records = document["runs"][0]["records"]
    assert {kept["text"] for kept in records} == {None}
    assert line["input_lens"] == [kept["prompt_tokens"] for kept in records]


def test_floors_and_regressions_decide_the_exit_code(env, url):
    first = bench(env, BenchOptions(url=url, count=20, output="a.json", gates=Gates(min_accept_length=6.0)))
    assert first.exit_code is ExitCode.OK
    low = bench(env, BenchOptions(url=url, count=20, output="b.json", gates=Gates(min_accept_length=8.5)))
    assert low.exit_code is ExitCode.CHECK_FAILED
    assert any("the floor is 8.5" in finding.summary for finding in low.findings)
    gates = Gates(against="a.json", max_regression=1e9)
    assert bench(env, BenchOptions(url=url, count=20, output="c.json", gates=gates)).exit_code is ExitCode.OK
    unlike = bench(env, BenchOptions(url=url, count=10, output="d.json", gates=gates))
    assert unlike.exit_code is ExitCode.CHECK_FAILED
    assert "prompts hash" in next(f.summary for f in unlike.findings if f.id == "bench.unlike")


def test_compare_and_report_read_what_bench_wrote(env, url, tmp_path):
    pytest.importorskip("matplotlib")
    for name in ("a.json", "b.json"):
        bench(env, BenchOptions(url=url, count=10, output=name))
    compared = bench_compare(env, "a.json", "b.json")
    assert compared.exit_code is ExitCode.OK
    (pair,) = compared.data.pairs
    accept = next(change for change in pair.changes if change.metric == "accept_length.mean")
    assert accept.relative == 0
    made = bench_report(env, ("a.json", "b.json"), output="r.html", png="r.png")
    assert made.data.runs == 2
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")


def test_a_prompts_file_and_an_open_loop(env, url, tmp_path):
    lines = [
        {
            "id": f"p{n}",
            "messages": [
                {"role": "user", "content": f"Ana has {n} pens and loses 1 of them. How many pens are left?"}
            ],
        }
        for n in range(3, 9)
    ]
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (run,) = bench(
        env, BenchOptions(url=url, prompts="mine.jsonl", rates=(20.0,), output="x.json", records=True)
    ).data.runs
    assert run.setting.dataset == "mine"
    assert (run.setting.request_rate, run.setting.concurrency) == (20.0, None)
    assert run.samples.ids == tuple(f"p{n}" for n in range(3, 9))
    assert run.records[0].intended_s is not None
    assert run.records[0].text is None


def test_loads_of_a_given_length_are_sized_by_the_server_s_own_count(env, url):
    options = BenchOptions(
        url=url,
        workloads=("shared-prefix",),
        count=6,
        groups=2,
        prefix_tokens=300,
        input_tokens=60,
        max_tokens=16,
        output="x.json",
    )
    (run,) = bench(env, options).data.runs
    assert run.summary.prompt_tokens / 6 == pytest.approx(360, rel=0.15)
    assert run.setting.characters_per_token is not None


def test_simulated_accept_lengths_are_refused(url, tmp_path):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path), "SGLANG_SIMULATE_ACC_LEN": "4"})
    with pytest.raises(CheckFailed, match="made up"):
        bench(env, BenchOptions(url=url, output="x.json"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            BenchOptions(url="http://127.0.0.1:1", sweep=("block_size=8,16",), output="x.json"),
            "no server answers|needs a profile",
        ),
        (BenchOptions(url="nowhere", output="x.json"), "not an http address"),
        (BenchOptions(url="http://127.0.0.1:1", sweep=("speed=3",)), "cannot sweep"),
        (
            BenchOptions(url="http://127.0.0.1:1", gates=Gates(max_regression=0.1)),
            "the result to compare with",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_first(env, options, words):
    from dflashctl.core.errors import DflashError

    with pytest.raises(DflashError, match=words):
        bench(env, options)


def test_unknown_workload_and_interface(env, url):
    with pytest.raises(UsageProblem, match="no workload"):
        bench(env, BenchOptions(url=url, workloads=("gsm9k",), output="x.json"))
    with pytest.raises(UsageProblem, match="no interface"):
        bench(env, BenchOptions(url=url, api="grpc", output="x.json"))


def test_nothing_runs(env):
    with pytest.raises(NotRunning):
        bench(env, BenchOptions(name="tiny-cpu"))


@pytest.mark.timeout(300)
def test_one_command_sweeps_blocks_with_baseline_and_meets_the_published_figures(env):
    options = BenchOptions(
        profile="tiny-cpu", workloads=("tiny-math",), sweep=("block_size=8,16",), output="sweep.json"
    )
    report = bench(env, options)
    found = {(r.setting.block_size, r.setting.speculation): r for r in report.data.runs}
    assert found[8, True].summary.accept_length.mean == pytest.approx(7.330, rel=0.02)
    assert found[16, True].summary.accept_length.mean == pytest.approx(13.529, rel=0.02)
    assert [e.verdict.value for r in report.data.runs for e in r.expectations] == ["reproduced", "reproduced"]
    assert found[16, True].speedup.per_request > 1
    assert found[None, False].summary.accept_length is None
    assert env.instances.read("tiny-cpu-bench").supervised is False
    assert report.exit_code is ExitCode.OK


def test_a_server_is_not_called_what_it_is_not(env):
    with (
        serving(per_request_speculation=False) as server,
        pytest.raises(UsageProblem, match="cannot leave speculation"),
    ):
        bench(env, BenchOptions(url=server.url, speculation=False, output="x.json"))
    with serving("not-speculating") as server, pytest.raises(UsageProblem, match="does not speculate"):
        bench(env, BenchOptions(url=server.url, speculation=True, output="x.json"))


def records(name: str) -> tuple[dict, ...]:
    path = Path(__file__).parent.parent / "workloads" / "data" / f"{name}.jsonl"
    return tuple(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def test_both_turns_of_a_conversation_are_sent_and_counted(tmp_path, url):
    sets = FakeDataSets(mt_bench_prompts=records("mt_bench"))
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, datasets=sets)
    options = BenchOptions(url=url, workloads=("mt-bench",), max_tokens=24, output="x.json")
    (run,) = bench(env, options).data.runs
    assert run.samples.ids == ("mt-bench/0#1", "mt-bench/0#2")
    assert (run.setting.prompts, run.setting.turns) == (1, 2)
    assert run.summary.accept_length.turns == 2
    asked = {len(r.split()) for r in records("mt_bench")[0]["prompt"]}
    assert run.summary.prompt_tokens > 2 * sum(asked)  # the second turn carries the first one and its answer
    assert sets.asked == ["HuggingFaceH4/mt_bench_prompts@e3a795c5e9a8:raw/question.jsonl"]


def test_cold_prefixes_are_new_in_every_run_and_still_comparable(tmp_path, url):
    env = Env(
        cwd=tmp_path,
        environ={"HOME": str(tmp_path)},
        datasets=FakeDataSets(openai_humaneval=records("humaneval")),
    )
    options = BenchOptions(
        url=url,
        workloads=("humaneval-long",),
        count=3,
        prefix_tokens=600,
        max_tokens=8,
        concurrency=(1, 2),
        output="a.json",
    )
    one, two = bench(env, options).data.runs
    assert one.setting.prompts_hash == two.setting.prompts_hash
    assert one.summary.prompt_tokens / 3 > 600
    bench(env, replace(options, output="b.json"))
    compared = bench_compare(env, "a.json", "b.json")
    assert [(pair.refusals, pair.paired) for pair in compared.data.pairs] == [((), False), ((), False)]


def test_longbench_reports_its_buckets(tmp_path, url):
    made = tuple({**records("longbench_v2")[0], "context": f"{n} " + "word " * 40} for n in range(4))
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, datasets=FakeDataSets(LongBench_v2=made))
    (run,) = bench(
        env, BenchOptions(url=url, workloads=("longbench-v2",), max_tokens=8, output="x.json")
    ).data.runs
    (bucket,) = run.buckets
    assert (bucket.name, bucket.requests) == ("up to 16k", 4)
    assert bucket.accept_length is not None
