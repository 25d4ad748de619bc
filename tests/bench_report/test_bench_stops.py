"""A `bench` that ends before its time: what was done is kept and told, and nothing else is lost or left behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import dflashctl
from dflashctl.commands.bench import bench
from dflashctl.commands.bench_compare import bench_compare
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_runs import Unfinished
from dflashctl.core.errors import ExitCode, Interrupted
from dflashctl.env import Env
from tests.fakes.fake_datasets import FakeDataSets
from tests.fakes.mock_sse import MockServer, Wish
from tests.support.program import Program, free_port, processes_with, wait_for

SCHEMA = json.loads((Path(dflashctl.__file__).parent / "schemas" / "bench-result.schema.json").read_text())
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SLOW = Wish(chunks=4, gap_ms=10, ttft_ms=60)


@pytest.fixture
def server():
    with MockServer(SLOW) as running:
        yield running


@pytest.fixture
def env(tmp_path):
    two_turns = tuple({"prompt": [f"first {n}", f"second {n}"]} for n in range(80))
    return Env(
        cwd=tmp_path,
        environ={"HOME": str(tmp_path)},
        datasets=FakeDataSets(mt_bench_prompts=two_turns),
    )


def written(tmp_path):
    document = json.loads((tmp_path / "run.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document["runs"]


@pytest.mark.parametrize(("workload", "sent"), [("tiny-math", 60), ("mt-bench", 160)])
def test_the_limit_of_a_run_keeps_what_was_done(env, server, tmp_path, workload, sent):
    options = BenchOptions(url=server.url, workloads=(workload,), max_duration_s=0.7, output="run.json")
    report = bench(env, options)
    (run,) = report.data.runs
    assert 0 < run.summary.requests < sent
    assert run.summary.errors == 0
    assert run.unfinished is Unfinished.MAX_DURATION
    assert run.summary.duration_s < 1.5
    (kept,) = written(tmp_path)
    assert kept["unfinished"] == "max_duration"
    assert any(f"of {sent} requests" in finding.summary for finding in report.findings)


def test_the_limit_of_a_run_holds_for_all_its_turns_together(env, server, tmp_path):
    options = BenchOptions(
        url=server.url,
        workloads=("mt-bench",),
        count=8,
        concurrency=(8,),
        max_duration_s=0.05,
        output="run.json",
    )
    (run,) = bench(env, options).data.runs
    assert {name.rpartition("#")[2] for name in run.samples.ids} == {"1"}
    assert run.unfinished is Unfinished.MAX_DURATION


def interrupting(env, server, *, at: int, number: int = signal.SIGINT):
    """The call that stops itself when the server has had `at` requests."""
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            if len(server.requests) >= at:
                signal.pthread_kill(threading.main_thread().ident, number)
                return
            over.wait(0.005)

    thread = threading.Thread(target=watch)

    def run(options):
        thread.start()
        try:
            return bench(env, options)
        finally:
            over.set()
            thread.join()

    return run


# The probe asks once or twice, the warm-up once for each of `concurrency`.
@pytest.mark.parametrize("number", STOPS)
@pytest.mark.parametrize("at", [1, 2], ids=["probe", "warm-up"])
def test_a_stop_before_the_first_measured_request_ends_the_command(env, server, tmp_path, at, number):
    server.defaults = Wish(chunks=50, gap_ms=20)
    with pytest.raises(Interrupted) as stopped:
        interrupting(env, server, at=at, number=number)(BenchOptions(url=server.url, output="run.json"))
    assert stopped.value.exit_code is ExitCode.INTERRUPTED
    assert "nothing was written" in stopped.value.hint
    assert len(server.requests) == at
    assert not (tmp_path / "run.json").exists()


@pytest.mark.parametrize("number", STOPS)
def test_a_stop_in_a_run_keeps_its_finished_requests(env, server, tmp_path, number):
    options = BenchOptions(url=server.url, concurrency=(1, 2), warm_up=1, output="run.json")
    report = interrupting(env, server, at=9, number=number)(options)
    assert report.exit_code is ExitCode.INTERRUPTED
    (run,) = report.data.runs
    assert run.unfinished is Unfinished.INTERRUPTED
    assert 0 < run.summary.requests < 10
    assert run.summary.errors == 0  # what was in flight is no fault of the server
    assert str(tmp_path / "run.json") in report.errors[0].hint
    (kept,) = written(tmp_path)
    assert kept["unfinished"] == "interrupted"
    assert kept["requests"] == len(kept["samples"]["ids"])


def test_an_interrupted_run_can_be_compared(env, server, tmp_path):
    options = BenchOptions(url=server.url, count=12, warm_up=1, allow_slow_client=True, output="whole.json")
    bench(env, options)
    interrupting(env, server, at=20)(replace(options, output="run.json"))
    assert written(tmp_path)[0]["requests"] < 12
    (pair,) = bench_compare(env, "whole.json", "run.json").data.pairs
    assert pair.paired
    assert pair.changes or pair.refusals


def test_a_stop_in_a_later_run_keeps_the_earlier_ones(env, server, tmp_path):
    options = BenchOptions(url=server.url, count=4, concurrency=(1, 2), warm_up=1, output="run.json")
    report = interrupting(env, server, at=9)(options)
    assert report.exit_code is ExitCode.INTERRUPTED
    first, *_ = written(tmp_path)
    assert first["unfinished"] is None


# At two requests a second the 60 problems last half a minute, however fast the machine is.
SLOWLY = ("--rate", "2")


@pytest.mark.timeout(200)
def test_the_end_of_the_server_in_a_run_is_told_with_the_command_that_explains_it(program):
    load = ("--rate", "10", "--count", "60", "--warm-up", "0", "-o", "run.json", "--json")
    process = program.start("bench", "--profile", "tiny-cpu", *load, start_new_session=True)
    assert any('"step": "bench"' in line for line in process.stderr), (
        "it ended before it had measured anything"
    )
    record = program.record("tiny-cpu-bench")
    os.kill(record["server"]["pid"], signal.SIGKILL)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1, (out, err)
    (broken,) = (f for f in json.loads(out)["findings"] if f["id"] == "bench.errors")
    assert "the server 'tiny-cpu-bench' ended meanwhile (SIGKILL)" in broken["summary"]
    assert broken["fix"] == "dflashctl diagnose tiny-cpu-bench"
    assert "SIGKILL" in json.dumps(program.json("diagnose", "tiny-cpu-bench"))


# `timeout` and Slurm signal the whole process group, and twice.
def group_stop(process, number):
    os.killpg(process.pid, number)
    os.killpg(process.pid, number)


def is_ready(program, name):
    return program.record(name).get("ready")


def is_starting(program, name):
    return program.record(name).get("server")


@pytest.fixture
def program(tmp_path):
    running = Program(tmp_path)
    yield running
    running.close()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("when", [is_starting, is_ready])
def test_a_stop_takes_the_server_that_bench_started_along(program, number, when):
    process = program.start(
        "bench", "--profile", "tiny-cpu", *SLOWLY, "-o", "run.json", start_new_session=True
    )
    wait_for(lambda: when(program, "tiny-cpu-bench"), "the start of the server")
    group_stop(process, number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, (out, err)
    assert program.json("status", "tiny-cpu-bench")["exit_code"] == 3
    assert not processes_with(str(program.state))


@pytest.mark.timeout(200)
def test_a_stop_keeps_the_finished_runs_of_a_server_that_bench_started(program):
    process = program.start(
        "bench", "--profile", "tiny-cpu", "--rate", "100,1", "-o", "run.json", start_new_session=True
    )
    wait_for((program.folder / "run.json").exists, "the first run")
    group_stop(process, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert written(program.folder)[0]["unfinished"] is None
    assert program.json("status", "tiny-cpu-bench")["exit_code"] == 3


@pytest.mark.timeout(200)
def test_a_stop_takes_the_server_that_smoke_started_along(program):
    up = program.json("up", "tiny-cpu", "--port", str(free_port()), "-d")
    assert up["exit_code"] == 0, up
    process = program.start("smoke", "tiny-cpu", "--against-no-spec", start_new_session=True)
    wait_for(lambda: is_starting(program, "tiny-cpu-no-spec"), "the start of the server")
    group_stop(process, signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert program.json("status", "tiny-cpu-no-spec")["exit_code"] == 3
    assert program.json("status", "tiny-cpu")["exit_code"] == 0


# The program with its standard input as the terminal that controls its session.
ON_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "dflashctl", "bench", *sys.argv[1:]])
"""


@pytest.mark.timeout(200)
@pytest.mark.parametrize("when", [is_starting, is_ready])
def test_a_terminal_that_is_closed_leaves_no_server_behind(program, when):
    """HUP, and nobody left to read a word of progress."""
    terminal, side = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, "--profile", "tiny-cpu", *SLOWLY, "-o", "run.json"],
        env=program.environment,
        cwd=program.folder,
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    reader = threading.Thread(target=drain, args=(os.dup(terminal), hung_up := threading.Event()))
    reader.start()
    wait_for(lambda: when(program, "tiny-cpu-bench"), "the start of the server")
    hung_up.set()
    reader.join()
    os.close(terminal)
    process.wait(timeout=60)
    assert program.json("status", "tiny-cpu-bench")["exit_code"] == 3


def drain(terminal, over):
    """Read what a terminal shows until it is closed."""
    while not over.is_set():
        if select.select([terminal], [], [], 0.05)[0]:
            os.read(terminal, 65536)
    os.close(terminal)
