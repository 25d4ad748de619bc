"""Status codes and payload shapes are those that real SGLang 0.5.17 gave (data/sglang_replies.json).

In that file the replies of /server_info are cut down to the arguments that exist in both engines, and /metrics
to the names and types of the metrics.
"""

from __future__ import annotations

import pytest

from .running import QUESTION, Stream, prompt
from .shapes import differences

CHAT = {
    "model": "default",
    "messages": [{"role": "user", "content": QUESTION}],
    "max_tokens": 128,
    "temperature": 0,
}
GENERATE = {"text": prompt(), "sampling_params": {"max_new_tokens": 128, "temperature": 0}}

ASKED = {
    "/health": ("/health", None),
    "/health_generate": ("/health_generate", None),
    "/model_info": ("/model_info", None),
    "/get_model_info": ("/get_model_info", None),
    "/server_info": ("/server_info", None),
    "/get_server_info": ("/get_server_info", None),
    "/v1/models": ("/v1/models", None),
    "/v1/loads": ("/v1/loads", None),
    "chat": ("/v1/chat/completions", CHAT),
    "chat_meta": ("/v1/chat/completions", {**CHAT, "return_meta_info": True}),
    "chat_stream_meta": ("/v1/chat/completions", {**CHAT, "return_meta_info": True, "stream": True}),
    "generate": ("/generate", GENERATE),
    "bad_json": ("/v1/chat/completions", {"model": "default", "messages": "oops"}),
    "bad_model": ("/v1/chat/completions", {**CHAT, "model": "nope"}),
    "too_long": (
        "/v1/chat/completions",
        {**CHAT, "messages": [{"role": "user", "content": "word " * 9000}]},
    ),
    "flush_cache": ("/flush_cache", {}),
}
# What may differ, and why.
LOADS = "there are no prefill queues, GPUs or disaggregation to report"
ALLOWED = {
    ".num_accelerators: missing": LOADS,
    ".loads[0].num_waiting_uncached_tokens: missing": LOADS,
    ".loads[0].num_total_tokens: missing": LOADS,
    ".loads[0].num_active_tokens: missing": LOADS,
    ".loads[0].total_prefill_uncached_tokens: missing": LOADS,
    ".loads[0].total_prefill_busy_us: missing": LOADS,
    ".loads[0].decode_moments: missing": LOADS,
    ".loads[0].memory: missing": LOADS,
    ".loads[0].disaggregation: missing": LOADS,
    ".loads[0].queues: missing": LOADS,
    ".per_request_speculation: added": "the one extension, advertised here",
}
ALLOWED |= {
    f".internal_states[0].memory_usage.{part}: missing": "there is no GPU memory to account for"
    for part in ("weight", "kvcache", "startup_available", "token_capacity_swa", "graph")
}
LATER = {
    ".internal_states[0].avg_spec_accept_length: added": "our first logged interval had passed, the recorded one had not"
}
LIMIT = "SGLang lets memory decide without speculation"
ALLOWED_PLAIN = {
    ".max_running_requests: NoneType became number": LIMIT,
    ".internal_states[0].max_running_requests: NoneType became number": LIMIT,
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("which", ["block_8", "plain"])
def test_a_reply_has_the_recorded_status_and_shape(request, replies, which, name):
    server = request.getfixturevalue(which)
    recorded = replies["dflash8" if which == "block_8" else "nospec"][name]
    path, body = ASKED[name]
    reply = server.get(path) if body is None else server.post(path, body)
    assert reply.status == recorded["status"]
    allowed = set(ALLOWED) | set(LATER) | (set(ALLOWED_PLAIN) if which == "plain" else set())
    unexpected = set(differences(recorded["body"], reply.body)) - allowed
    assert not unexpected


def test_the_comparison_sees_what_it_should():
    recorded = {"a": 1, "b": {"c": "x"}, "d": [{"e": None}], "f": 1}
    ours = {"a": 1.5, "b": {"c": 2}, "d": [{"e": 0, "g": 1}]}
    assert set(differences(recorded, ours)) == {
        ".b.c: str became number",
        ".d[0].e: NoneType became number",
        ".d[0].g: added",
        ".f: missing",
    }


def test_every_exception_is_still_needed(block_8, replies):
    seen = set()
    for name, (path, body) in ASKED.items():
        reply = block_8.get(path) if body is None else block_8.post(path, body)
        seen |= set(differences(replies["dflash8"][name]["body"], reply.body))
    assert seen - set(LATER) == set(ALLOWED)


@pytest.mark.parametrize("name", ["chat_stream_meta", "too_long", "flush_cache"])
def test_texts_that_people_and_tools_know_are_the_same_words(block_8, replies, name):
    path, body = ASKED[name]
    recorded = replies["dflash8"][name]["body"]
    found = block_8.post(path, body).body
    if name == "too_long":  # the recorded prompt was cut to 9000 words too
        assert found["message"] == recorded["message"]
    assert found == recorded


def test_the_same_question_gets_the_recorded_answer_and_figures(block_8, replies):
    recorded = replies["dflash8"]["chat_meta"]["body"]["choices"][0]
    found = block_8.post("/v1/chat/completions", ASKED["chat_meta"][1]).body["choices"][0]
    assert found["message"] == recorded["message"]
    for key in (key for key in recorded["meta_info"] if key.startswith("spec_")):
        assert found["meta_info"][key] == recorded["meta_info"][key], key
    assert found["meta_info"]["finish_reason"] == {"type": "stop", "matched": 2}


def test_a_stream_has_the_recorded_chunks(block_8, replies):
    recorded = replies["dflash8"]["generate_stream"]["body"]
    found = list(Stream(block_8, "/generate", GENERATE))
    assert found[-1] == recorded[-1] == "[DONE]"
    texts = [[chunk["text"] for chunk in chunks[:-1]] for chunks in (found, recorded)]
    assert texts[0] == texts[1]
    optional = {".meta_info.response_sent_to_client_ts: missing": "SGLang stamps only some chunks"}
    for ours, theirs in zip(found[:-1], recorded[:-1], strict=True):
        assert set(differences(theirs, ours)) <= set(optional)


def test_metrics_have_sglangs_names_and_types(block_8, plain, replies):
    block_8.generate(prompt())
    for server, which in ((block_8, "dflash8"), (plain, "nospec")):
        lines = server.get("/metrics").text.splitlines()
        found = {" ".join(line.split()[2:]) for line in lines if line.startswith("# TYPE")}
        assert found <= set(replies[which]["metrics_after"]["body"])
