"""How requests are sent: closed and open loop, warm-up, limits, processes, and what the client says of itself."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import threading

import pytest

from dflashctl.bench import (
    BenchRequest,
    CountSource,
    LoadProgress,
    LoadSpec,
    RequestError,
    probe_counts,
    run_load,
    summarise,
)
from dflashctl.bench.plan import reachable
from dflashctl.bench.run import worker_configs
from dflashctl.bench.schedule import poisson_times
from dflashctl.bench.server import metrics_text, server_info
from dflashctl.bench.shape import endpoint, head_bytes, shaped_body
from dflashctl.core.accept import cross_check
from dflashctl.core.errors import CheckFailed, Unavailable, UsageProblem
from tests.bench.conftest import request
from tests.fakes.mock_sse import MockServer, Wish


def most_at_once(server):
    edges = sorted([(t["received_s"], 1) for t in server.truth] + [(t["end_s"], -1) for t in server.truth])
    level, most = 0, 0
    for _, step in edges:
        level += step
        most = max(most, level)
    return most


def test_a_closed_loop_keeps_its_concurrency_and_its_connections(load, server):
    result = load(*[{"chunks": 4}] * 24, concurrency=6)
    assert all(r.ok for r in result.records)
    assert most_at_once(server) == 6
    assert server.accepted == 6
    assert result.client.connections == 6


def test_connect_time_is_not_in_ttft(load):
    result = load({}, {}, concurrency=1)
    first, second = result.records
    assert first.connect_s > 0
    assert second.connect_s is None
    assert result.client.connect_ms.p50 > 0


def test_several_processes_merge_exactly(load, server):
    result = load(
        *[{"chunks": 3, "tokens": [1, 4, i % 5 + 1]} for i in range(20)], concurrency=4, processes=2
    )
    assert [r.id for r in result.records] == [f"r{i}" for i in range(20)]
    assert [r.completion_tokens for r in result.records] == [6 + i % 5 for i in range(20)]
    assert {r.process for r in result.records} == {0, 1}
    assert result.client.processes == 2
    assert most_at_once(server) == 4
    alone = [r for r in result.records if r.process == 0]
    assert {int(r.id[1:]) % 2 for r in alone} == {0}


def test_the_concurrency_is_split_evenly():
    spec = LoadSpec(url="http://h:1", concurrency=7, processes=3)
    configs = worker_configs(spec, [[0, 0, 1]] * 10, warmups=2, bodies_fd=3)
    assert [c["limit"] for c in configs] == [3, 2, 2]
    assert sorted(n for c in configs for n in c["plan"]) == list(range(2, 10))
    assert sorted(n for c in configs for n in c["warmup"]) == [0, 1]


def test_warm_up_is_left_out_and_comes_before(load, server):
    result = load({}, {}, warmup=[{"chunks": 2}, {"chunks": 2}, {"status": 503}])
    assert [r.id for r in result.records] == ["r0", "r1"]
    assert (result.warmup_requests, result.warmup_errors) == (3, 1)
    assert [t["id"] for t in server.truth] == ["w0", "w1", "w2", "r0", "r1"]
    assert result.window.start_s >= server.truth[1]["end_s"]
    assert server.accepted == 1  # the warm connection is used


def test_an_open_loop_sends_at_the_planned_times(load, server):
    result = load(*[{"chunks": 2, "ttft_ms": 1, "gap_ms": 1}] * 30, concurrency=None, rate=60, seed=7)
    planned = poisson_times(30, 60, 7)
    start = result.records[0].intended_s
    assert [r.intended_s - start for r in result.records] == pytest.approx(planned)
    for record in result.records:
        assert record.sent_s >= record.intended_s
    assert result.client.sends == 30


def test_an_open_loop_does_not_hide_the_wait_for_a_slow_server(load, server):
    """One slow answer at a limit of one in flight delays all later ones: latencies count from the plan."""
    wishes = [{"chunks": 1, "ttft_ms": 600}] + [{"chunks": 1, "ttft_ms": 1}] * 5
    result = load(*wishes, concurrency=1, rate=200, seed=1)
    summary = summarise(result.records, result.window)
    served = [t["sends"][0] - t["received_s"] for t in server.truth[1:]]
    assert summary.ttft_ms.p50 > 400 > sorted(served)[2] * 1e3
    for record in result.records[1:]:
        assert record.first_s - record.intended_s > record.first_s - record.sent_s
    assert result.client.late_sends <= 1  # only the first one was free to go: the limit held the others back


def test_poisson_times_are_repeatable_and_have_the_rate():
    times = poisson_times(20000, 50.0, 3)
    assert times == poisson_times(20000, 50.0, 3) != poisson_times(20000, 50.0, 4)
    assert times[0] == 0
    assert times[-1] == pytest.approx(400, rel=0.05)


def test_the_duration_limit_stops_sending_and_lets_the_rest_finish(load):
    result = load(*[{"chunks": 10, "gap_ms": 20}] * 200, concurrency=2, max_duration_s=0.5)
    assert 2 <= len(result.records) < 200
    assert all(r.ok for r in result.records)


def test_a_dead_server_fails_every_request_and_ends():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    spec = LoadSpec(url=f"http://127.0.0.1:{port}", concurrency=4)
    result = run_load(spec, [BenchRequest(id=str(i), body={}) for i in range(10)])
    assert {r.error for r in result.records} == {RequestError.CONNECT}
    assert len(result.records) == 10
    assert "refused" in result.records[0].error_detail


LISTENING, DEAD = "127.0.0.1", "127.0.0.2"


@pytest.mark.parametrize(
    ("hosts", "want"),
    [
        ((LISTENING, DEAD), LISTENING),
        ((DEAD, LISTENING), LISTENING),
        ((DEAD, DEAD, LISTENING), LISTENING),
        ((DEAD, "127.0.0.3"), DEAD),  # the load itself then says what is wrong
        ((DEAD,), DEAD),
    ],
)
def test_every_address_of_a_name_is_tried(server, hosts, want):
    """As when "localhost" is ::1 first and the server has IPv4 alone."""
    places = [(socket.AF_INET, (host, server.port)) for host in hosts]
    assert reachable(places, 5.0) == (socket.AF_INET, (want, server.port))


def test_an_address_family_that_this_host_lacks_is_passed_over(server):
    places = [
        (socket.AF_INET6, ("::1", server.port, 0, 0)),
        (socket.AF_INET, ("127.0.0.1", server.port)),
    ]
    assert reachable(places, 5.0) == places[1]


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_processes_without_a_request_of_their_own_are_no_fault(load, processes):
    result = load({}, {}, rate=100.0, concurrency=None, processes=processes)
    assert [r.error for r in result.records] == [None, None]


def test_an_unknown_host_is_unavailable():
    spec = LoadSpec(url="http://no-such-host.invalid", concurrency=1)
    with pytest.raises(Unavailable, match="ended with code 1"):
        run_load(spec, [BenchRequest(id="a", body={})])


def test_a_connection_closed_while_idle_is_replaced_without_an_error(server, load):
    """`Connection: close` is not announced: the server just hangs up after its answer."""
    result = load({"chunks": 1, "framing": "close"}, {"chunks": 2}, {"chunks": 2})
    assert [r.error for r in result.records] == [None, None, None]


def test_long_bodies_are_sent_whole(load, server):
    long = "x" * (8 << 20)
    spec = LoadSpec(url=server.url, concurrency=2)
    body = {"messages": [{"role": "user", "content": long}], "mock": {"chunks": 1}}
    result = run_load(spec, [BenchRequest(id=str(i), body=body) for i in range(3)])
    assert [r.error for r in result.records] == [None] * 3
    assert all(r["body"]["messages"][0]["content"] == long for r in server.requests)


def test_ctrl_c_keeps_what_was_done(server):
    requests = [request("quick", {"chunks": 1})] + [
        request(f"s{i}", {"chunks": 5000, "gap_ms": 20}) for i in range(3)
    ]
    seen = threading.Event()

    def notify(progress):
        if progress.done and not seen.is_set():
            seen.set()
            os.kill(os.getpid(), signal.SIGINT)

    result = run_load(LoadSpec(url=server.url, concurrency=2), requests, notify)
    assert result.interrupted
    assert result.records[0].ok
    assert {r.error for r in result.records[1:]} == {RequestError.ABORTED}


def test_progress_tells_done_errors_and_accept_length(load):
    seen = []
    load(
        *[{"tokens": [1, 6], "verify_steps": 1, "gap_ms": 30}] * 12,
        {"status": 503},
        concurrency=1,
        notify=seen.append,
    )
    last = seen[-1]
    assert last.total == 13
    assert last.accept_length_pooled == pytest.approx(7.0)
    assert last.left_s > 0


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("max_duration_s", [None, 30.0], ids=str)
def test_an_open_loop_knows_when_it_sends_its_last_request(server, processes, max_duration_s):
    last_send_s = min(poisson_times(5, 0.01, 0)[-1], max_duration_s or 1e9)
    seen = []

    def notify(progress):
        if progress.done and not seen:
            seen.append(progress)
            os.kill(os.getpid(), signal.SIGINT)

    spec = LoadSpec(url=server.url, rate=0.01, max_duration_s=max_duration_s, processes=processes)
    assert run_load(spec, [request(f"r{i}", {"chunks": 1}) for i in range(5)], notify).interrupted
    assert (seen[0].total, seen[0].last_send_s) == (5, last_send_s)
    assert seen[0].left_s == pytest.approx(last_send_s - seen[0].elapsed_s)


@pytest.mark.parametrize(
    ("done", "in_flight", "elapsed_s", "last_send_s", "left_s"),
    [
        (0, 4, 3.0, None, None),  # a closed loop before its first answer
        (5, 4, 10.0, None, 190.0),
        (0, 1, 3.0, 400.0, 397.0),
        (1, 0, 3.0, 400.0, 397.0),
        (10, 80, 10.0, 20.0, 80.0),  # the server does not keep up
        (50, 50, 30.0, 20.0, 30.0),  # all are sent
        (100, 0, 30.0, 20.0, 0.0),
    ],
    ids=str,
)
def test_the_time_left(done, in_flight, elapsed_s, last_send_s, left_s):
    progress = LoadProgress(
        done=done, errors=0, total=100, in_flight=in_flight, elapsed_s=elapsed_s,
        completion_tokens=0, verify_steps=0, last_send_s=last_send_s,
    )  # fmt: skip
    assert progress.left_s == (None if left_s is None else pytest.approx(left_s))
    assert progress.requests_per_s == (pytest.approx(done / elapsed_s) if done else None)


def test_the_key_goes_into_the_header_and_nowhere_else(load, server, monkeypatch, tmp_path):
    monkeypatch.setenv("BENCH_KEY", "secret-1")
    load({"chunks": 1}, key_env="BENCH_KEY")
    (tmp_path / "key").write_text("secret-2\n")
    load({"chunks": 1}, key_file=tmp_path / "key", headers={"X-Run": "7"})
    fields = [r["fields"] for r in server.requests]
    assert [f[b"authorization"] for f in fields] == [b"bearer secret-1", b"bearer secret-2"]
    assert fields[1][b"x-run"] == b"7"
    monkeypatch.setenv("BENCH_KEY", " ")
    with pytest.raises(UsageProblem, match="BENCH_KEY holds no API key"):
        load({}, key_env="BENCH_KEY")


SPECS = [
    ({"concurrency": None}, "needs a concurrency or a request rate"),
    ({"concurrency": 0}, "concurrency 0"),
    ({"rate": -1.0}, "request rate -1"),
    ({"processes": 0}, "0 processes"),
    ({"concurrency": 2, "processes": 3}, "3 processes for 2"),
]


@pytest.mark.parametrize(("options", "message"), SPECS)
def test_loads_that_cannot_be(options, message):
    with pytest.raises(UsageProblem, match=message):
        LoadSpec(url="http://h", **{"concurrency": 1, **options})


def test_a_body_gets_what_the_measurement_needs_and_nothing_else():
    chat = request("a", {})
    generate = request("a", {}, "generate")
    spec = LoadSpec(url="http://h", concurrency=1)
    assert shaped_body(chat, spec) == {
        **chat.body,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_spec_tokens_details": True,
    }
    plain = dataclasses.replace(spec, counts=None, chunk_usage=False)
    assert set(shaped_body(chat, plain)) - set(chat.body) == {"stream", "stream_options"}
    whole = dataclasses.replace(spec, counts=CountSource.WHOLE)
    assert shaped_body(chat, whole) == {**chat.body, "stream": False, "return_meta_info": True}
    assert shaped_body(generate, spec) == {**generate.body, "stream": True}
    with pytest.raises(UsageProblem, match="no exact counts"):
        shaped_body(chat, dataclasses.replace(spec, counts=CountSource.GENERATE))


@pytest.mark.parametrize(
    ("url", "want"),
    [
        ("http://h:30000", ("h", 30000, False)),
        ("https://h", ("h", 443, True)),
        ("http://[::1]:8/v1", ("::1", 8, False)),
    ],
)
def test_endpoints(url, want):
    assert endpoint(url) == want


@pytest.mark.parametrize("url", ["h:1", "ftp://h", "http://", "http://h:x"])
def test_what_is_no_endpoint(url):
    with pytest.raises(UsageProblem):
        endpoint(url)


def test_the_path_of_a_base_url_is_kept_and_v1_not_doubled():
    assert head_bytes("http://h:1/a/v1/", "chat", {}).startswith(
        b"POST /a/v1/chat/completions HTTP/1.1\r\nHost: h:1\r\n"
    )
    with pytest.raises(UsageProblem, match="line end"):
        head_bytes("http://h", "chat", {"X": "a\r\nY: b"})


@pytest.mark.parametrize(
    ("wish", "source"), [({}, CountSource.STREAM), ({"sglext": False}, None)], ids=["streamed", "none"]
)
def test_the_probe_finds_what_the_server_answers(server, wish, source):
    assert (
        probe_counts(LoadSpec(url=server.url, concurrency=8), request("p", {"chunks": 2, **wish})) is source
    )


def test_the_probe_refuses_simulated_accept_lengths(server):
    server.environment = {"internal_states": [{"env": {"SGLANG_SIMULATE_ACC_LEN": "4.5"}}]}
    with pytest.raises(CheckFailed, match="made up"):
        probe_counts(LoadSpec(url=server.url, concurrency=1), request("p", {}))


def test_the_probe_says_why_nothing_is_served(server):
    with pytest.raises(Unavailable, match="HTTP 503"):
        probe_counts(LoadSpec(url=server.url, concurrency=1), request("p", {"status": 503}))


def test_the_counters_agree_with_the_requests(load, server):
    spec = LoadSpec(url=server.url, concurrency=1)
    load({"tokens": [1, 5, 5]})
    before = metrics_text(spec)
    result = load(*[{"tokens": [1, 8, 6, 7]}] * 5)
    check = cross_check(before, metrics_text(spec), result.records)
    assert check.agrees
    assert check.counted == pytest.approx(check.requested) == pytest.approx(22 / 3)
    load({"tokens": [1, 1, 1]})  # another client's work
    assert not cross_check(before, metrics_text(spec), result.records).agrees
    assert server_info(spec)["version"] == "0.5.23"


def test_memory_stays_bounded_when_the_server_floods():
    with MockServer(Wish(ttft_ms=0, gap_ms=0, chunks=20000, group=500), silent_truth=True) as server:
        result = run_load(
            LoadSpec(url=server.url, concurrency=8, counts=None, chunk_usage=False),
            [BenchRequest(id=str(i), body={"messages": []}) for i in range(24)],
        )
    assert sum(r.chunks for r in result.records) == 24 * 20000
    assert all(r.completion_tokens == 20000 for r in result.records)
    assert result.client.deferred_bytes_max < 24 << 20
    assert result.client.memory_bytes_max < 120 << 20  # 480,000 chunks of 250 bytes went through
