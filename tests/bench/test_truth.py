"""Each definition against a server that knows when it sent what."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from dflashctl.bench import LoadSpec, RequestError, summarise
from dflashctl.core import latency

SLACK_S = 0.25  # what a busy machine may add; wrong definitions are off by more than that


def truth(server, name="r0"):
    return next(t for t in server.truth if t["id"] == name)


def arrivals(record):
    times = [record.first_s]
    for gap in record.gaps_s:
        times.append(times[-1] + gap)
    return times


def test_every_chunk_is_stamped_after_it_was_sent(one, server):
    record = one(chunks=12, gap_ms=20)
    for came, sent in zip(arrivals(record), truth(server)["sends"], strict=True):
        assert sent - 1e-4 <= came <= sent + SLACK_S  # gaps are kept as 32-bit floats


def test_ttft_is_from_send_to_the_first_token(one, server):
    record = one(chunks=3, ttft_ms=100)
    real = truth(server)
    assert record.sent_s <= real["received_s"]
    assert real["sends"][0] - real["received_s"] <= latency.ttft_s(record) <= 0.1 + SLACK_S


def test_the_role_chunk_is_no_token(one, server):
    """It comes at once, 400 ms before the first content."""
    record = one(chunks=2, ttft_ms=400)
    assert record.first_s >= truth(server)["sends"][0]
    assert record.chunks == 2


def test_a_reasoning_delta_is_a_first_token(one, server):
    record = one(chunks=6, reasoning=4, gap_ms=100)
    sends = truth(server)["sends"]
    assert sends[0] <= record.first_s <= sends[0] + SLACK_S < sends[4]
    assert (record.chunks, record.reasoning_chunks) == (6, 4)


def test_a_tool_call_delta_is_a_first_token(one, server):
    record = one(chunks=4, tool_call=True, gap_ms=100)
    assert record.first_s < truth(server)["sends"][1]
    assert record.chunks == 4


def test_tpot_uses_the_servers_tokens_not_the_chunks(one, server):
    record = one(tokens=[1, 8, 6, 7], gap_ms=20)
    sends = truth(server)["sends"]
    assert record.completion_tokens == 22
    assert latency.tpot_s(record) == pytest.approx((record.last_s - record.first_s) / 21)
    assert latency.tpot_s(record) == pytest.approx((sends[-1] - sends[0]) / 21, abs=SLACK_S / 21)


def test_decode_rate_leaves_the_first_chunk_out(one):
    record = one(tokens=[8, 6, 7], gap_ms=20)
    assert record.tokens_first_chunk == 8
    assert latency.decode_tokens_per_s(record) == pytest.approx(13 / (record.last_s - record.first_s))
    assert 1 / latency.tpot_s(record) == pytest.approx(20 / (record.last_s - record.first_s))


def test_itl_is_a_sample_for_each_token_and_icl_for_each_chunk(load):
    result = load({"tokens": [1, 4, 2], "gap_ms": 20})
    record = result.records[0]
    first, second = record.gaps_s
    assert list(latency.itl_samples(record)) == [(first / 4, 4), (second / 2, 2)]
    summary = summarise(result.records, result.window)
    assert summary.icl_ms.mean == pytest.approx((first + second) / 2 * 1e3, rel=1e-5)
    assert summary.itl_exact


def test_without_running_counts_itl_is_said_to_be_inexact(load):
    result = load({"tokens": [1, 4, 2]}, chunk_usage=False)
    summary = summarise(result.records, result.window)
    assert not summary.itl_exact
    assert result.records[0].tokens_first_chunk is None
    assert len(list(latency.itl_samples(result.records[0]))) == 2


def test_e2e_ends_with_the_last_token_not_with_the_last_byte(one, server):
    record = one(chunks=3, gap_ms=10)
    assert latency.e2e_s(record) == record.last_s - record.intended_s
    assert record.end_s >= record.last_s >= truth(server)["sends"][-1]


def test_chunks_that_come_together_are_counted_apart(one, server):
    record = one(chunks=12, group=4, gap_ms=50)
    assert record.chunks == 12
    assert record.coalesced_chunks >= 9
    sends = sorted(set(truth(server)["sends"]))
    assert len(sends) == 3
    assert sum(record.gaps_s) == pytest.approx(sends[-1] - sends[0], abs=SLACK_S)


def test_large_reads_are_counted_like_small_ones(one):
    record = one(chunks=2000, group=50, gap_ms=1, spec={"chunk_usage": False})
    assert (record.chunks, record.completion_tokens, len(record.gaps_s)) == (2000, 2000, 1999)


@pytest.mark.parametrize("cut", [1, 7, 100])
def test_bytes_cut_anywhere_give_the_same_record(one, cut):
    text = 'näïve 😀 "quoted" \\ data: {'
    record = one(chunks=3, text=text, cut=cut, gap_ms=1, spec={"keep_text": True})
    assert record.error is None
    assert record.text == text * 3
    assert (record.chunks, record.completion_tokens) == (3, 3)


@pytest.mark.parametrize(
    "wish",
    [
        {"keepalive": True},
        {"line_end": "\r\n"},
        {"line_end": "\r\n", "cut": 5},
        {"framing": "close"},
        {"framing": "trailers"},
        {"connection": "close"},
        {"late_finish": True},
        {"done_event": False},
        {"usage": "none"},
        {"sglext": False},
    ],
    ids=json.dumps,
)
def test_lawful_oddities_change_nothing_else(load, wish):
    result = load(
        *[{"chunks": 5, "gap_ms": 1, "ttft_ms": 2, "text": "é", **wish}] * 3, keep_text=True, concurrency=2
    )
    for record in result.records:
        assert record.error is None, record.error_detail
        assert (record.chunks, record.text, record.finish_reason) == (5, "é" * 5, "stop")
        assert record.completion_tokens == 5  # from the running count where there is no usage chunk
        assert (record.spec is None) == (wish.get("sglext") is False)


def test_without_any_count_tokens_stay_unknown(one):
    record = one(chunks=5, usage="none", spec={"chunk_usage": False})
    assert record.completion_tokens is None
    assert latency.tpot_s(record) is None


def test_wrong_usage_is_doubted(load):
    result = load({"chunks": 9, "usage": "wrong"}, chunk_usage=False)
    summary = summarise(result.records, result.window)
    assert summary.doubts["usage_below_chunks"] == 1


ERRORS = [
    ({"error_at": 3}, RequestError.STREAM, "out of memory", 3),
    ({"reset_at": 3}, RequestError.RESET, "", 3),
    ({"close_at": 3}, RequestError.CLOSED, "after 3 content chunks", 3),
    ({"garbage_at": 3}, RequestError.PROTOCOL, "not a JSON object", None),
    ({"stall_at": 3}, RequestError.STALL, "no byte for 0.5 s", 3),
    ({"status": 429, "retry_after": "7"}, RequestError.STATUS, "HTTP 429 (retry after 7): too busy", 0),
    ({"status": 503}, RequestError.STATUS, "HTTP 503: too busy", 0),
    ({"finish": "", "done_event": False}, RequestError.CLOSED, "without a finish reason", 8),
    ({"close_silently": True}, RequestError.CLOSED, "closed the connection", 0),
]


@pytest.mark.parametrize(
    ("wish", "kind", "detail", "chunks"), ERRORS, ids=[str(next(iter(w))) for w, *_ in ERRORS]
)
def test_errors_are_told_apart_and_spoil_nothing_else(load, wish, kind, detail, chunks):
    result = load({"gap_ms": 2}, {"gap_ms": 2, **wish}, {"gap_ms": 2}, stall_s=0.5)
    before, broken, after = result.records
    assert (before.error, after.error) == (None, None)
    assert broken.error is kind
    assert detail in broken.error_detail
    if chunks is not None and wish != ERRORS[0][0]:
        assert broken.chunks == chunks
    summary = summarise(result.records, result.window)
    assert (summary.requests, summary.errors, summary.errors_by_kind) == (3, 1, {kind.value: 1})
    assert summary.completion_tokens == 16


def test_a_timeout_ends_a_request_that_goes_on(one):
    record = one(chunks=500, gap_ms=20, spec={"timeout_s": 0.4})
    assert record.error is RequestError.TIMEOUT


@pytest.mark.parametrize("wish", [{"ttft_ms": 900}, {"stall_at": 3}], ids=["first token", "mid-stream"])
def test_silence_is_bounded_by_the_timeout_alone(one, wish):
    """Nothing else ends a request unless a stall limit was asked for: a busy server may be silent for long."""
    assert LoadSpec(url="http://h", concurrency=1).stall_s is None
    assert one(**wish, spec={"timeout_s": 0.5}).error is RequestError.TIMEOUT
    if "ttft_ms" in wish:
        assert one(**wish, spec={"timeout_s": 30.0}).error is None


@pytest.mark.parametrize("api", ["chat", "generate"])
def test_accept_counts_are_the_engines(one, api):
    record = one(api=api, tokens=[1, 8, 6, 7, 3], verify_steps=4, histogram=[0, 1, 0, 0, 0, 1, 1, 1])
    assert record.completion_tokens == 25
    assert record.spec.verify_steps == 4
    assert record.spec.accepted_drafts == 21
    assert record.spec.histogram == (0, 1, 0, 0, 0, 1, 1, 1)


def test_accept_counts_of_a_whole_answer(one):
    from dflashctl.bench import CountSource

    record = one(tokens=[1, 8, 6], verify_steps=2, spec={"counts": CountSource.WHOLE, "keep_text": True})
    assert (record.completion_tokens, record.spec.verify_steps, record.first_s) == (15, 2, None)
    assert record.text == "tok tok tok "
    assert latency.ttft_s(record) is None
    assert latency.e2e_s(record) > 0


@pytest.mark.parametrize("cumulative", [True, False])
def test_generate_counts_tokens_of_each_event(one, cumulative):
    record = one(
        api="generate", tokens=[1, 8, 6], text="ab ", cumulative=cumulative, spec={"keep_text": True}
    )
    assert list(record.chunk_tokens) == [1, 8, 6]
    assert record.tokens_first_chunk == 1
    assert record.text == "ab ab ab "


def test_chunk_counts_are_never_taken_for_tokens(load):
    result = load({"tokens": [1, 8, 6], "sglext": False})
    assert summarise(result.records, result.window).accept_length is None


def test_records_come_in_the_order_of_the_plan(load, server):
    result = load(*[{"chunks": 2, "ttft_ms": 40 - 10 * i} for i in range(4)], concurrency=4)
    assert [r.id for r in result.records] == ["r0", "r1", "r2", "r3"]
    assert [t["id"] for t in server.truth] == ["r0", "r1", "r2", "r3"]


def test_gaps_are_between_neighbouring_chunks(one, server):
    record = one(chunks=5, gap_ms=60)
    sends = truth(server)["sends"]
    for gap, (a, b) in zip(record.gaps_s, pairwise(sends), strict=True):
        assert gap == pytest.approx(b - a, abs=SLACK_S)
