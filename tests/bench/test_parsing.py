"""Bytes to counts, without sockets: any cut of the same bytes gives the same tally."""

from __future__ import annotations

import json
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dflashctl.bench.answer import Answer, read_head
from dflashctl.bench.dechunk import Chunked, FramingError, Sized, whole_chunks
from dflashctl.bench.scan import ChatReader
from dflashctl.bench.seen import SeenEvents, as_object, read_event, seen_before
from dflashctl.bench.sse import Events
from dflashctl.bench.stream_event import StreamEvent
from dflashctl.bench.tally import Tally
from tests.fakes.mock_sse import Frames, Wish

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def stream(wish, *, running=False):
    body = {
        "stream_options": {"include_usage": True, "continuous_usage_stats": running},
        "return_spec_tokens_details": True,
    }
    return b"".join(data for _, data in Frames(wish, body, "chat").build())


def read(pieces, *, api="chat", chunk_usage=False, keep_text=False):
    answer = Answer(api=api, chunk_usage=chunk_usage, keep_text=keep_text)
    answer.begin(read_head(HEAD))
    for at, piece in enumerate(pieces):
        answer.feed(float(at), piece)
    answer.end(float(len(pieces)), closed=False)
    return answer.tally


def cut(data, places):
    edges = [0, *sorted({p % (len(data) + 1) for p in places}), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if b > a]


WISHES = st.builds(
    Wish,
    tokens=st.lists(st.integers(1, 9), min_size=1, max_size=60),
    text=st.sampled_from(
        ["tok ", "é😀", 'say "data: {" \\', '"delta":{"content":"x', "\r\n\n", "data: {}\n\n0\r\n\r\n"]
    ),
    reasoning=st.integers(0, 5),
    line_end=st.sampled_from(["\n", "\r\n"]),
    keepalive=st.booleans(),
    framing=st.sampled_from(["chunked", "trailers"]),
    late_finish=st.booleans(),
    group=st.integers(1, 7),
)


@settings(max_examples=150, deadline=None)
@given(
    wish=WISHES,
    places=st.lists(st.integers(0, 1 << 20), max_size=30),
    running=st.booleans(),
    text=st.booleans(),
)
def test_where_the_bytes_are_cut_does_not_matter(wish, places, running, text):
    tally = read(cut(stream(wish, running=running), places), chunk_usage=running, keep_text=text)
    assert tally.error is None
    assert tally.mismatches == 0
    assert (tally.chunks, tally.completion_tokens) == (len(wish.tokens), sum(wish.tokens))
    assert tally.reasoning_chunks == min(wish.reasoning, len(wish.tokens))
    assert tally.finish_reason == "stop"
    assert tally.verify_steps == max(1, len(wish.tokens) - 1)
    assert len(tally.gaps_s) == tally.chunks - 1
    if running:
        assert list(tally.chunk_tokens) == wish.tokens
    if text:
        assert tally.reasoning.whole() + tally.text.whole() == wish.text * len(wish.tokens)


def test_many_chunks_in_one_read_are_counted_at_once_and_alike():
    data = stream(Wish(chunks=500))
    whole, single = read([data]), read([data[i : i + 1000] for i in range(0, len(data), 1000)])
    assert whole.chunks == single.chunks == 500
    assert whole.coalesced_chunks == 499


def test_a_content_of_another_object_is_no_delta():
    odd = {
        "choices": [{"index": 0, "delta": {"x": None}, "logprobs": {"content": "no"}, "finish_reason": None}]
    }
    payload = b"data: " + json.dumps(odd, separators=(",", ":")).encode() + b"\n\n"
    tally = read([b"%x\r\n%b\r\n" % (len(payload), payload), stream(Wish(chunks=3))])
    assert (tally.chunks, tally.mismatches) == (3, 0)


def test_a_chunk_that_the_scan_misreads_ends_the_scan(monkeypatch):
    """A key twice, of which JSON takes the last: the check finds it, and JSON is right."""
    monkeypatch.setattr("dflashctl.bench.scan._answers", count())
    payload = b'data: {"choices":[{"delta":{"content":"x"},"delta":{}}]}\n\n'
    tally = read([b"%x\r\n%b\r\n" % (len(payload), payload), stream(Wish(chunks=3))])
    assert (tally.chunks, tally.mismatches) == (3, 1)


def event(**found):
    payload = b"data: " + json.dumps(found, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def test_a_running_count_is_not_the_final_one():
    """The role chunk carries a count too, and no usage chunk follows: the last running one holds."""
    pieces = [
        event(
            choices=[{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}],
            usage={"completion_tokens": 1},
        ),
        *(
            event(
                choices=[{"delta": {"content": "a"}, "finish_reason": None}], usage={"completion_tokens": n}
            )
            for n in (1, 9, 15)
        ),
        b"%x\r\ndata: [DONE]\n\n\r\n0\r\n\r\n" % 14,
    ]
    tally = read(pieces, chunk_usage=True)
    assert (tally.completion_tokens, list(tally.chunk_tokens)) == (15, [1, 8, 6])


def test_spaced_json_is_read_too():
    payload = b'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}\n\n'
    tally = read([b"%x\r\n%b\r\n0\r\n\r\n" % (len(payload), payload)])
    assert (tally.chunks, tally.finish_reason) == (1, "stop")


@pytest.mark.parametrize(
    "bad", [b"zz\r\nhello", b"5\r\nhelloXX", b"-5\r\nhello\r\n", b"\r\n\r\n", b"1" * 5000], ids=repr
)
def test_bad_framing_is_a_protocol_error(bad):
    assert read([bad]).error[0] == "protocol"


@pytest.mark.parametrize("size", range(1, 12))
def test_chunks_survive_every_cut(size):
    data = b"5;x=y\r\nhello\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\nnext"
    chunked = Chunked()
    body = b"".join(chunked.feed(data[i : i + size]) for i in range(0, len(data) - 4, size))
    assert (body, chunked.done) == (b"hello0123456789", True)


def test_whole_chunks_refuses_what_it_cannot_vouch_for():
    assert whole_chunks(b"2\r\nab\r\n3\r\ncde\r\n") == [b"ab", b"cde"]
    for data in (
        b"2\r\nabc\r\n",
        b"2\r\nab\r\n0\r\n\r\n",
        b"2\r\nab\r\n3\r\ncd",
        b"2\r\nab",
        b"5\r\na\r\nbc\r\n",
    ):
        assert whole_chunks(data) is None, data


def test_a_sized_body_keeps_to_its_length():
    body = Sized(4)
    assert body.feed(b"ab") == b"ab"
    assert (body.feed(b"cdef"), body.done, body.surplus) == (b"cd", True, b"ef")


EVENTS = [
    (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    (b"data:a\r\n\r\n", [b"a"]),
    (b"data: a\rdata: b\r\r", [b"a\nb"]),
    (b": keep-alive\n\ndata: a\n\n", [b"a"]),
    (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (b"event: x\nid: 3\ndata: a\nretry: 5\n\n", [b"a"]),
    (b"data: a", []),
]


@pytest.mark.parametrize(("data", "payloads"), EVENTS, ids=repr)
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_events_of_every_form_and_cut(data, payloads, size):
    events = Events()
    found = [p for i in range(0, len(data), size) for p in events.feed(data[i : i + size])]
    if data.endswith(b"\r"):
        found += events.flush()  # a lone CR at the end might have been half of a CR LF
    assert found == payloads


def test_an_event_without_its_blank_line_counts_at_the_end():
    events = Events()
    assert events.feed(b"data: a\n") == []
    assert events.flush() == [b"a"]


HEADS = [
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", (200, 5, False, False)),
    (b"HTTP/1.1 429 Too Many\r\nConnection: close\r\nContent-Length:0\r\n\r\n", (429, 0, False, True)),
    (b"HTTP/1.0 200 OK\r\n\r\n", (200, None, False, True)),
    (b"HTTP/1.1 200\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n", (200, None, True, False)),
]


@pytest.mark.parametrize(("raw", "want"), HEADS)
def test_heads(raw, want):
    head = read_head(raw + b"rest")
    assert (head.status, head.length, head.chunked, head.close) == want
    assert head.size == len(raw)


def test_a_head_that_is_not_http_is_refused():
    assert read_head(b"HTTP/1.1 200 OK\r\nX: ") is None
    for raw in (b"SSH-2.0-x\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"x" * 70000):
        with pytest.raises(FramingError):
            read_head(raw)


HEADS_OF_CHUNKS = [
    b'{"id":"a","object":"chat.completion.chunk","created":1,"model":"m",',
    b'{"id":"\xc3\xa9","object":"","created":22,"model":"org/name",',
    b'{"id":"a\\"","object":"x","created":1,"model":"m",',
    b'{"id":"a","object":"x","created":1,"model":"m","error":{"message":"no"},',
    b'{"object":"x","id":"a","created":1,"model":"m",',
    b'{"id":"a","object":"x","created":1.5,"model":"m",',
    b'{"id":"\xff","object":"x","created":1,"model":"m",',
    b'{"id":"a","object":"x","created":01,"model":"m",',
    b"{",
    b"{{",
    b'{"id":"a","object":"x","created":1,"model":"m\n",',
]
RESTS_OF_CHUNKS = [
    b'"choices":[]}',
    b'"choices":[],"usage":{"completion_tokens":2}}',
    b'"choices":[],"id":"late"}',
    b'"choices":[{"index":0,"delta":{"content":""}}],"error":{"message":"late"}}',
    b'"choices":[',
    b'"choices":[]}}',
    b'"choices":"' + b"x" * 600 + b'"}',
]


def said(event):
    """All that an event says, to compare."""
    return None if event is None else {name: getattr(event, name) for name in StreamEvent.__slots__}


@pytest.mark.parametrize("rest", RESTS_OF_CHUNKS, ids=lambda rest: rest[:40].decode())
def test_a_chunk_seen_before_reads_as_it_would_anew(rest):
    """All that follows the four fields before "choices" is the same whoever sent it; any other start is read whole."""
    events = SeenEvents()
    for head in [*HEADS_OF_CHUNKS, *reversed(HEADS_OF_CHUNKS)]:
        payload = head + rest
        anew = as_object(payload)
        after = events.rest(payload)
        found = seen_before(after) or read_event(payload, after)
        assert said(found) == (None if anew is None else said(StreamEvent(anew)))


def test_what_was_seen_is_forgotten_before_it_fills_the_memory():
    head, events = HEADS_OF_CHUNKS[0], SeenEvents()
    first = head + b'"choices":[{"index":0,"delta":{"role":"0"}}]}'
    read_event(first, events.rest(first))
    assert seen_before(events.rest(first)) is not None
    for number in range(2000):
        payload = head + b'"choices":[{"index":%d,"delta":{}}]}' % number
        read_event(payload, events.rest(payload))
    assert seen_before(events.rest(first)) is None


@pytest.mark.parametrize(
    "numbers", [b'"usage":{"completion_tokens":2}', b'"sglext":{"spec_tokens_details":{"spec_verify_ct":2}}']
)
def test_counts_are_not_remembered_since_they_differ_in_every_answer(numbers):
    payload, events = HEADS_OF_CHUNKS[0] + b'"choices":[],' + numbers + b"}", SeenEvents()
    assert read_event(payload, events.rest(payload)) is not None
    assert seen_before(events.rest(payload)) is None


LAST_EVENTS = [
    b'"usage":{"prompt_tokens":3,"completion_tokens":2}}',
    b'"usage":{"prompt_tokens":3,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}}',
    b'"usage":{"prompt_tokens":3,"completion_tokens":2},"sglext":{"spec_tokens_details":{"spec_verify_ct":9}}}',
    b'"sglext":{"spec_tokens_details":{"spec_verify_ct":9,"spec_correct_drafts_histogram":[1,2]}}}',
    b'"sglext":{"spec_tokens_details":{"spec_verify_ct":9}},"usage":{"completion_tokens":2}}',
    b'"sglext":{"spec_tokens_details":{"spec_verify_ct":9},"more":1}}',
    b'"sglext":{"spec_tokens_details":[{"spec_verify_ct":9}]}}',
    b'"usage":{"completion_tokens":2}}}',
    b'"usage":{"completion_tokens":2}',
    b'"usage":{"completion_tokens":2} }',
    b'"usage":{}}',
    b'"usage":{"completion_tokens":2},"error":{"message":"too late"}}',
    b'"usage":{"completion_tokens":true,"prompt_tokens":-1}}',
]


@pytest.mark.parametrize("numbers", LAST_EVENTS, ids=lambda raw: raw.decode())
def test_the_last_counts_are_read_as_json_would_have_them(numbers):
    payload = HEADS_OF_CHUNKS[0] + b'"choices":[],' + numbers
    quick, whole = Tally(), Tally()
    ChatReader(quick, chunk_usage=True).event(0.0, payload)
    ChatReader(whole, chunk_usage=True).event(0.0, b'{"other":0,' + payload[1:])  # no head that is known
    names = set(Tally.__slots__) - {"error", "gaps_s", "chunk_tokens"}
    assert {name: getattr(quick, name) for name in names} == {name: getattr(whole, name) for name in names}
    assert (quick.error and quick.error[0]) == (whole.error and whole.error[0])
