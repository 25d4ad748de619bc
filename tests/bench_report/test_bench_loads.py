"""Loads as `bench` sends them: every combination of load and processes, beside a mock that knows what was asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import dflashctl
from dflashctl.commands.bench import bench
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.errors import UsageProblem
from dflashctl.env import Env
from tests.fakes.caching_server import CachingServer
from tests.fakes.mock_sse import MockServer, Wish
from tests.support.cli import run as cli

SCHEMA = json.loads((Path(dflashctl.__file__).parent / "schemas" / "bench-result.schema.json").read_text())


@pytest.fixture
def server():
    with MockServer(Wish(chunks=3, gap_ms=1, ttft_ms=2)) as running:
        yield running


@pytest.fixture
def env(tmp_path):
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "load",
    [
        {"rates": (50.0,)},
        {"rates": (50.0,), "warm_up": 0},
        {"rates": (50.0,), "warm_up": 5},
        {"concurrency": (1,)},
        {"concurrency": (4,), "warm_up": 1},
        {"concurrency": (1, 3), "rates": (50.0,)},
    ],
    ids=str,
)
@pytest.mark.parametrize("processes", [2, 3])
def test_any_load_goes_with_any_number_of_processes(env, server, load, processes):
    options = BenchOptions(url=server.url, count=6, processes=processes, output="x.json", **load)
    runs = bench(env, options).data.runs
    assert {(run.summary.requests, run.summary.errors) for run in runs} == {(6, 0)}
    for run in runs:
        assert run.summary.client.processes == min(processes, run.setting.concurrency or processes)


@pytest.mark.parametrize(
    ("load", "cores", "processes"),
    [
        ({"concurrency": (1100,)}, 4, 2),
        ({"concurrency": (1100,)}, 2, 1),
        ({"concurrency": (1100,), "processes": 1}, 4, 1),
        ({"concurrency": (1100,), "processes": 3}, 2, 3),
        ({"concurrency": (2048,), "count": 20}, 64, 1),  # never more than 20 in flight
        ({"concurrency": (8,)}, 64, 1),
        ({"rates": (20_000.0,)}, 64, 1),
    ],
    ids=str,
)
def test_a_load_gets_the_processes_that_it_asks_for(server, tmp_path, load, cores, processes):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, cores=cores)
    (tmp_path / "mine.jsonl").write_text("".join(f'{{"prompt": "{n}"}}\n' for n in range(1100)))
    options = BenchOptions(url=server.url, prompts="mine.jsonl", warm_up=0, output="x.json", **load)
    (run,) = bench(env, options).data.runs
    assert run.summary.client.processes == processes
    assert json.loads((tmp_path / "x.json").read_text())["runs"][0]["client"]["processes"] == processes


def test_a_prompts_file_may_begin_with_a_byte_order_mark(env, server, tmp_path):
    (tmp_path / "mine.jsonl").write_text('{"prompt": "a"}\n', encoding="utf-8-sig")
    (run,) = bench(env, BenchOptions(url=server.url, prompts="mine.jsonl", output="x.json")).data.runs
    assert run.summary.errors == 0


def test_the_records_of_a_run_hold_numbers(env, server, tmp_path):
    bench(env, BenchOptions(url=server.url, count=2, output="x.json", records=True))
    document = json.loads((tmp_path / "x.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    for record in document["runs"][0]["records"]:
        assert all(isinstance(gap, float) for gap in record["gaps_s"])
        assert (len(record["gaps_s"]), record["chunk_tokens"]) == (2, [1, 1, 1])
    document["runs"][0]["records"][0]["gaps_s"] = "array('f', [0.004])"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate(document)


@pytest.mark.parametrize(
    ("words", "loads"),
    [
        ("-c 1 -c 2", ["tiny-math c1", "tiny-math c2"]),
        ("-c 1,2 -c 3", ["tiny-math c1", "tiny-math c2", "tiny-math c3"]),
        ("--rate 40 --rate 50", ["tiny-math 40/s", "tiny-math 50/s"]),
        ("-c 1 --sweep concurrency=2 --no-baseline", ["tiny-math c1", "tiny-math c2"]),
        ("--rate 40 --sweep rate=50 --no-baseline", ["tiny-math 40/s", "tiny-math 50/s"]),
        ("-c 1 --rate 50", ["tiny-math c1", "tiny-math 50/s"]),
        ("--prompts mine.jsonl -w tiny-math", ["mine c1", "tiny-math c1"]),
    ],
    ids=str,
)
def test_whatever_was_asked_for_is_measured(server, tmp_path, words, loads):
    (tmp_path / "mine.jsonl").write_text('{"prompt": "a"}\n')
    ended = cli("bench", "--url", server.url, "--count", "2", *words.split(), "--json", cwd=tmp_path)
    settings = [run["setting"] for run in json.loads(ended.out)["data"]["runs"]]
    assert [
        f"{s['dataset']} " + (f"{s['request_rate']:g}/s" if s["request_rate"] else f"c{s['concurrency']}")
        for s in settings
    ] == loads


@pytest.mark.parametrize(
    ("load", "warmed"),
    [
        ({"concurrency": (1, 16), "count": 2}, [2, 2]),
        ({"concurrency": (16, 1, 4), "count": 12}, [12, 8, 8]),
        ({"concurrency": (5000,), "count": 3}, [3]),
        ({"concurrency": (5000,), "prompts": "mine.jsonl"}, [2]),
        ({"concurrency": (1, 4), "count": 2, "warm_up": 3}, [3, 3]),
        ({"concurrency": (2,), "rates": (50.0,), "count": 9}, [8, 8]),
        ({"concurrency": (2,), "count": 3, "warm_up": 0}, [0]),
    ],
    ids=str,
)
def test_a_load_is_warmed_up_with_as_many_requests_as_it_has_in_flight_and_some_more(
    server, tmp_path, load, warmed
):
    (tmp_path / "mine.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    events = []
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, notify=events.append)
    runs = bench(env, BenchOptions(url=server.url, output="x.json", **load)).data.runs
    assert [run.setting.warm_up for run in runs] == warmed
    told = [event.text for event in events if event.step == "warm_up"]
    assert told == [
        f"{run.setting.label}: {count} short requests to warm up"
        for run, count in zip(runs, warmed, strict=True)
        if count
    ]


@pytest.mark.parametrize("load", [{"concurrency": (1,)}, {"rates": (8.0,)}], ids=str)
def test_what_the_progress_says_to_people_is_in_its_fields_too(tmp_path, load):
    events = []
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, notify=events.append)
    with MockServer(Wish(chunks=3, gap_ms=60, ttft_ms=60)) as slow:
        bench(env, BenchOptions(url=slow.url, count=8, output="x.json", **load))
    told = [event for event in events if event.step == "bench"]
    assert any(event.left_s for event in told)
    for event in told:
        assert (event.rate_per_s is not None) == bool(event.done)
        assert (
            (f"{event.left_s:.0f} s left" in event.text)
            if event.left_s is not None
            else "left" not in event.text
        )


TOOLS = [
    {"role": "user", "content": [{"type": "text", "text": "1 + 2?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "sum", "arguments": "{}"}}],
    },
    {"role": "tool", "content": "3", "tool_call_id": "c"},
]


def test_own_messages_reach_the_server_as_they_are(env, server, tmp_path):
    (tmp_path / "mine.jsonl").write_text(json.dumps({"messages": TOOLS}))
    (run,) = bench(env, BenchOptions(url=server.url, prompts="mine.jsonl", output="x.json")).data.runs
    assert run.summary.errors == 0
    assert server.requests[-1]["body"]["messages"] == TOOLS


@pytest.mark.parametrize(
    ("prompts", "api", "words"),
    [
        ("mine.jsonl", "generate", "prompt 'line-1' has messages with more than a role and a text"),
        ("-", "chat", "--prompts reads a file, not standard input"),
    ],
)
def test_prompts_that_cannot_be_sent_are_refused_before_anything_is(
    env, server, tmp_path, prompts, api, words
):
    (tmp_path / "mine.jsonl").write_text(json.dumps({"messages": TOOLS}))
    (tmp_path / "tokenizer_config.json").write_text('{"chat_template": "{{ messages[0].content }}"}')
    options = BenchOptions(url=server.url, prompts=prompts, api=api, tokenizer=".", output="x.json")
    with pytest.raises(UsageProblem, match=words):
        bench(env, options)
    assert not [request for request in server.requests if "1 + 2?" in str(request)]
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("load", "warmed"), [({"concurrency": (16, 1, 4)}, [6, 1, 4]), ({"rates": (50.0,)}, [1])], ids=str
)
def test_prompts_that_are_made_to_a_length_warm_up_no_more_than_is_in_flight(tmp_path, load, warmed):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    options = BenchOptions(workloads=("random",), count=6, input_tokens=64, output="x.json", **load)
    with CachingServer() as counting:
        runs = bench(env, replace(options, url=counting.url)).data.runs
    assert [run.setting.warm_up for run in runs] == warmed
