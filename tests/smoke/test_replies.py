"""Replies are read as real SGLang writes them (recorded from 0.5.17), and odd ones are refused with a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflashctl.core.loads import running_requests
from dflashctl.core.replies import BadReply, parse_chat, parse_chat_stream, parse_generate
from dflashctl.core.smoke import read_facts

RECORDED = json.loads((Path(__file__).parent / "data" / "sglang-0.5.17.json").read_text(encoding="utf-8"))


def body(name: str) -> bytes:
    return json.dumps(RECORDED[name]).encode()


def test_facts_of_a_real_server():
    facts = read_facts("http://x", RECORDED["/v1/models"], RECORDED["/server_info"])
    assert (facts.model, facts.max_model_len) == ("/models/dflash-tiny", 4096)
    assert (facts.speculates, facts.block_size, facts.version) == (True, 8, "0.5.17")
    assert (facts.reasoning_parser, facts.tool_call_parser, facts.grammar_backend) == (None, None, None)
    assert facts.per_request_speculation is False


@pytest.mark.parametrize(
    ("models", "info"),
    [(None, None), ([], "x"), ({"data": [3]}, {"version": 5}), ({}, {"status": "ok", "workers": 2})],
)
def test_a_server_that_says_nothing_useful_is_unknown_not_wrong(models, info):
    facts = read_facts("http://x", models, info)
    assert facts.model is None
    assert facts.speculates is None


def test_counts_of_a_chat_reply():
    chat = parse_chat(body("chat_meta"))
    assert chat.text.endswith("#### 19")
    assert (chat.prompt_tokens, chat.completion_tokens, chat.total_tokens, chat.cached_tokens) == (
        31,
        52,
        83,
        30,
    )
    assert chat.spec is not None
    assert (chat.spec.verify_steps, chat.spec.correct_drafts, chat.spec.proposed_drafts) == (8, 50, 56)
    assert sum(chat.spec.histogram) == 8
    assert chat.accept_length == 6.5


def test_counts_of_the_native_reply():
    native = parse_generate(body("generate"))
    assert (native.finish_reason, native.completion_tokens, native.accept_length) == ("stop", 52, 6.5)


def test_running_requests():
    assert running_requests("/v1/loads", body("/v1/loads")) == 0
    assert running_requests("/metrics", RECORDED["metrics"].encode()) == 0
    ranks = 'sglang:num_running_reqs{tp_rank="0"} 3.0\nsglang:num_running_reqs{tp_rank="1"} 3.0\nsglang:num_queue_reqs{tp_rank="0"} 2.0\n'
    assert running_requests("/metrics", ranks.encode()) == 5
    assert running_requests("/metrics", b"other 1\n") is None
    assert running_requests("/v1/loads", b"<html>") is None


def test_a_stream_with_reasoning_counts_and_usage():
    events = [
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning_content": "hm "}}]},
        {"choices": [{"delta": {"content": "7"}, "finish_reason": None}]},
        {"choices": [{"delta": {"content": "!"}, "finish_reason": "stop"}]},
        {"choices": [], "sglext": {"spec_tokens_details": {"spec_verify_ct": 2}}},
        {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}},
    ]
    found = parse_chat_stream([*map(json.dumps, events), "[DONE]"])
    assert (found.reasoning, found.text, found.finish_reason, found.done, found.events) == (
        "hm ",
        "7!",
        "stop",
        True,
        6,
    )
    assert found.accept_length == 3.0


@pytest.mark.parametrize(
    ("parse", "reply", "words"),
    [
        (parse_chat, b"<html>login</html>", "not JSON"),
        (parse_chat, b"[]", "not a JSON object"),
        (parse_chat, b'{"choices": []}', "no message"),
        (parse_chat, b'{"choices": {"a": 1}}', "no message"),
        (parse_generate, b'{"text": "x"}', "no meta_info"),
    ],
)
def test_odd_replies_are_refused(parse, reply, words):
    with pytest.raises(BadReply, match=words):
        parse(reply)


@pytest.mark.parametrize("payload", ['{"error": {"message": "boom"}}', '{"object": "error"}', "{"])
def test_errors_within_a_stream_are_refused(payload):
    with pytest.raises(BadReply):
        parse_chat_stream([payload])
