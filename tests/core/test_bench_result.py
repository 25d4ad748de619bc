"""From records to the figures of a run."""

from __future__ import annotations

import dataclasses

import pytest

from dflashctl.bench import RunLabels, Slo, judge_client, processes_for, spoiled, summarise
from dflashctl.core import latency
from dflashctl.core.bench_record import RequestError, RequestRecord, SpecCounts, Window, doubts
from dflashctl.core.bench_window import steady_window, tokens_within
from dflashctl.core.client_health import ClientHealth
from dflashctl.core.report import to_json

KEYS = {
    "dataset", "block_size", "concurrency", "requests", "errors", "accept_length", "output_tokens_per_s",
    "per_request_tokens_per_s", "ttft_ms", "tpot_ms", "itl_ms", "e2e_ms", "client",
}  # fmt: skip
HEALTH = ClientHealth(
    cpu_share=0.2, loop_lag_ms_p50=0.05, loop_lag_ms_p99=0.4, loop_lag_ms_max=3.0, sends=10, late_sends=0,
    late_ms_max=0.0, connections=2, reconnects=0, connect_ms=None, processes=1, cpu_s=0.5, memory_bytes_max=1,
    chunks=100, deferred_bytes_max=0, parsed_busy=0, loop="epoll",
)  # fmt: skip


def record(start=0.0, first=0.2, last=1.2, tokens=11, chunks=11, **more):
    fields = {
        "id": "r", "intended_s": start, "sent_s": start, "first_s": start + first, "last_s": start + last,
        "end_s": start + last, "completion_tokens": tokens, "chunks": chunks, "tokens_first_chunk": 1,
        "gaps_s": [(last - first) / max(1, chunks - 1)] * (chunks - 1), "finish_reason": "stop",
    }  # fmt: skip
    return RequestRecord(**{**fields, **more})


def test_the_summary_has_the_keys_that_scripts_rely_on():
    spec = SpecCounts(verify_steps=2, accepted_drafts=9, histogram=(0, 1, 1))
    found = summarise(
        [record(spec=spec)], None, labels=RunLabels(dataset="gsm8k", block_size=8), client=HEALTH
    )
    data = to_json(found)
    assert set(data) >= KEYS
    assert set(data["accept_length"]) >= {
        "mean",
        "pooled",
        "completion_weighted",
        "p10",
        "p50",
        "p90",
        "histogram",
    }
    assert set(data["per_request_tokens_per_s"]) >= {"p50", "p99"}
    for name in ("ttft_ms", "tpot_ms", "itl_ms", "e2e_ms"):
        assert set(data[name]) == {"mean", "p50", "p90", "p95", "p99"}
    assert set(data["client"]) >= {"cpu_share", "loop_lag_ms_p99"}


def test_figures_of_two_requests():
    found = summarise([record(), record(start=1.0, first=0.4, last=2.4, tokens=21, chunks=21)], None)
    assert found.ttft_ms.mean == pytest.approx(300)
    assert found.tpot_ms.mean == pytest.approx(100)
    assert found.e2e_ms.p50 == pytest.approx(1800)
    assert found.duration_s == pytest.approx(3.4)
    assert found.output_tokens_per_s == pytest.approx(32 / 3.4)
    assert found.per_request_tokens_per_s.p50 == pytest.approx(10)
    assert found.intervals["ttft_ms.p50"].high == pytest.approx(400)
    assert found.accept_length is None
    assert found.turns_without_counts == 2


def test_latencies_count_from_the_planned_time():
    late = record(intended_s=-1.0)
    assert latency.ttft_s(late) == pytest.approx(1.2)
    assert latency.e2e_s(late) == pytest.approx(2.2)
    assert latency.tpot_s(late) == pytest.approx(0.1)


def test_failed_requests_count_as_errors_and_nowhere_else():
    failed = record(error=RequestError.STALL, first=9.0, last=9.1)
    found = summarise([record(), failed], Window(start_s=0, end_s=2))
    assert (found.requests, found.errors, found.errors_by_kind) == (2, 1, {"stall": 1})
    assert found.ttft_ms.p99 == pytest.approx(200)
    assert found.output_tokens_per_s == pytest.approx(5.5)


def test_a_run_without_an_answer_has_unknowns_not_zeros():
    found = summarise([record(error=RequestError.CONNECT)], None)
    assert (found.ttft_ms, found.tpot_ms, found.itl_ms, found.output_tokens_per_s) == (None,) * 4
    assert summarise([], None).requests == 0


def test_tpot_and_decode_rate_differ_as_at_accept_length_seven():
    """128 tokens, 7 in the first chunk: the usual rate is 5 % too high."""
    long = record(tokens=128, chunks=18, tokens_first_chunk=7)
    assert 1 / latency.tpot_s(long) / latency.decode_tokens_per_s(long) == pytest.approx(127 / 121)


def test_short_answers_have_no_tpot():
    assert latency.tpot_s(record(tokens=1, chunks=2)) is None
    assert latency.tpot_s(record(tokens=8, chunks=1, gaps_s=[])) is None
    assert latency.decode_tokens_per_s(record(tokens=8, chunks=1, gaps_s=[])) is None


def test_goodput_counts_failures_as_sent():
    records = [record(), record(first=0.9), record(error=RequestError.STATUS), record(last=20.2)]
    found = summarise(records, Window(start_s=0, end_s=10), slo=Slo(ttft_ms=500, tpot_ms=150)).goodput
    assert (found.good, found.sent, found.attainment) == (1, 4, 0.25)
    assert found.requests_per_s == pytest.approx(0.1)
    assert summarise(records, None, slo=Slo(e2e_ms=1300)).goodput.good == 2


def test_the_steady_window_leaves_ramp_and_drain_out():
    records = [record(start=s, first=0.1, last=1.0) for s in (0.0, 0.5, 1.0, 1.5, 2.0)]
    window = steady_window(records)
    assert (window.start_s, window.end_s) == (0.5, 2.5)
    assert steady_window([]) is None


def test_tokens_inside_a_window():
    one = record(first=0.0, last=1.0, tokens=11)
    assert tokens_within(one, Window(start_s=-1, end_s=2)) == pytest.approx(11)
    assert tokens_within(one, Window(start_s=0.5, end_s=2)) == pytest.approx(5)
    assert tokens_within(one, Window(start_s=-1, end_s=0.5)) == pytest.approx(6)
    assert tokens_within(one, Window(start_s=3, end_s=4)) == 0
    whole = record(first_s=None, last_s=None, end_s=1.0)
    assert tokens_within(whole, Window(start_s=0, end_s=2)) == 11


def test_counts_that_contradict_themselves():
    assert doubts(record()) == ()
    assert doubts(record(tokens=3, chunks=11)) == ("usage_below_chunks",)
    assert doubts(record(tokens=11, chunk_tokens=[6, 6])) == ("usage_differs",)
    assert doubts(record(spec=SpecCounts(verify_steps=12))) == ("steps_above_tokens",)
    assert doubts(record(tokens=2, chunks=2, spec=SpecCounts(verify_steps=1, accepted_drafts=7))) == ()
    assert doubts(record(tokens=None)) == ("no_token_count",)


def change(**more):
    return dataclasses.replace(HEALTH, **more)


VERDICTS = [
    (HEALTH, []),
    (change(cpu_share=0.95), ["client_cpu"]),
    (change(late_sends=1), ["client_late_sends"]),
    (change(loop_lag_ms_p99=5.0), ["client_lag", "client_lag"]),
    (change(loop_lag_ms_p99=2.0), []),
]


@pytest.mark.parametrize(("health", "ids"), VERDICTS)
def test_a_client_that_spoils_the_figures_is_refused(health, ids):
    found = judge_client(health, ttft_ms_p50=200.0, icl_ms_p50=10.0)
    assert [f.id for f in found] == ids
    assert spoiled(found) == bool(ids)


@pytest.mark.parametrize(
    ("cpu_share", "helps"), [(0.8, "more processes"), (0.05, "something else held its core")]
)
def test_a_client_that_lags_is_told_whether_more_processes_help(cpu_share, helps):
    (found,) = judge_client(change(loop_lag_ms_p99=5.0, cpu_share=cpu_share), icl_ms_p50=10.0)
    assert helps in found.fix


def test_without_latencies_only_the_cpu_and_the_sends_judge():
    assert judge_client(change(loop_lag_ms_p99=500.0)) == ()


@pytest.mark.parametrize(
    ("concurrency", "cores", "processes"),
    [(None, 64, 1), (1, 1, 1), (1024, 64, 1), (1025, 64, 2), (8000, 8, 4), (8000, 2, 1)],
)
def test_processes_for_a_concurrency(concurrency, cores, processes):
    assert processes_for(concurrency, cores) == processes
