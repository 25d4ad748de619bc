"""Loads as `bench` sends them: every combination of load and processes, beside a mock that knows what was asked."""

from __future__ import annotations

import pytest

from dflashctl.commands.bench import bench
from dflashctl.core.bench_options import BenchOptions
from dflashctl.env import Env
from tests.fakes.mock_sse import MockServer, Wish


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
