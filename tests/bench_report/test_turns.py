"""The turns of conversations as one run: the server's time and all of it, and nothing of the client's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.bench import RequestRecord, summarise
from dflashctl.commands.bench import bench
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_window import whole_window, without_pauses
from dflashctl.core.client_health import ClientHealth, worst_of
from dflashctl.core.stats import distribution
from dflashctl.env import Env
from tests.bench_report.made_runs import record
from tests.fakes.fake_datasets import FakeDataSets
from tests.fakes.mock_sse import MockServer, Wish


def test_a_pause_between_turns_is_nobody_s_time():
    first = [record(index) for index in range(4)]
    end_s = whole_window(first).end_s
    for pause_s in (0.0, 0.5, 1000.0, -0.25):
        later = end_s + pause_s - whole_window(first).start_s
        second = [
            replace(
                r,
                id=f"{r.id}#2",
                **{
                    name: getattr(r, name) + later
                    for name in ("intended_s", "sent_s", "first_s", "last_s", "end_s")
                },
            )
            for r in first
        ]
        joined = without_pauses([first, second])
        assert whole_window(joined).duration_s == pytest.approx(2 * whole_window(first).duration_s)
        one, both = summarise(first, None), summarise(joined, None)
        assert both.output_tokens_per_s == pytest.approx(one.output_tokens_per_s)
        assert both.ttft_ms.p50 == pytest.approx(one.ttft_ms.p50)
        assert both.tpot_ms.p50 == pytest.approx(one.tpot_ms.p50)


def test_a_turn_of_which_nothing_was_sent_moves_nothing():
    unsent = RequestRecord(id="x", intended_s=7.0)
    assert without_pauses([[record(0)], [unsent], []]) == (record(0), unsent)
    assert without_pauses([]) == ()


HEALTH = ClientHealth(
    cpu_share=0.1, loop_lag_ms_p50=0.1, loop_lag_ms_p99=0.2, loop_lag_ms_max=0.3, sends=10, late_sends=0,
    late_ms_max=0.1, connections=2, reconnects=0, connect_ms=distribution([0.001]), processes=1, cpu_s=1.0,
    memory_bytes_max=10, chunks=100, deferred_bytes_max=5, parsed_busy=1, loop="epoll",
)  # fmt: skip


def test_the_client_is_judged_by_its_worst_turn():
    bad = replace(HEALTH, cpu_share=0.95, loop_lag_ms_p99=9.0, late_sends=4, connect_ms=None)
    for turns in ([bad, HEALTH], [HEALTH, bad]):
        found = worst_of(turns)
        assert (found.cpu_share, found.loop_lag_ms_p99) == (0.95, 9.0)
        assert (found.sends, found.late_sends, found.connections, found.chunks) == (20, 4, 4, 200)
        assert found.connect_ms == HEALTH.connect_ms
    assert worst_of([HEALTH]) == HEALTH


def test_the_rate_of_two_turns_is_that_of_the_server(tmp_path):
    sets = FakeDataSets(mt_bench_prompts=tuple({"prompt": [f"first {n}", f"second {n}"]} for n in range(8)))
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, datasets=sets)
    with MockServer(Wish(chunks=5, gap_ms=10, ttft_ms=20)) as server:
        options = BenchOptions(url=server.url, workloads=("mt-bench",), concurrency=(8,), output="x.json")
        (run,) = bench(env, options).data.runs
    assert run.summary.requests == 16
    turns = (server.truth[-16:-8], server.truth[-8:])
    of_server = [max(t["end_s"] for t in turn) - min(t["received_s"] for t in turn) for turn in turns]
    between = min(t["received_s"] for t in turns[1]) - max(t["end_s"] for t in turns[0])
    assert sum(of_server) <= run.summary.duration_s < sum(of_server) + between
