"""Requests that cannot be served are refused with the status and the words of SGLang."""

from __future__ import annotations

import pytest

from .running import QUESTION, SPECULATIVE, prompt

CHAT = {"messages": [{"role": "user", "content": QUESTION}]}


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/v1/chat/completions", b"{not json", "not JSON"),
        ("/v1/chat/completions", b"[1]", "not a JSON object"),
        ("/v1/chat/completions", b"\xff\xfe", "not JSON"),
        ("/v1/chat/completions", {}, "'missing', 'loc': ('body', 'messages')"),
        ("/v1/chat/completions", {"messages": []}, "cannot be empty"),
        ("/v1/chat/completions", {"messages": ["hi"]}, "needs a role"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": 5}]}, "valid string"),
        (
            "/v1/chat/completions",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
            "text parts only",
        ),
        ("/v1/chat/completions", {**CHAT, "temperature": -1}, "temperature must be in"),
        ("/v1/chat/completions", {**CHAT, "temperature": "hot"}, "valid number"),
        ("/v1/chat/completions", {**CHAT, "temperature": True}, "valid number"),
        ("/v1/chat/completions", {**CHAT, "top_p": 0}, "top_p must be in"),
        ("/v1/chat/completions", {**CHAT, "top_k": 0}, "top_k must be"),
        ("/v1/chat/completions", {**CHAT, "min_p": 1.5}, "min_p must be in"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 0}, "at least 1"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": "many"}, "valid integer"),
        ("/v1/chat/completions", {**CHAT, "n": 0}, "n must be between"),
        ("/v1/chat/completions", {**CHAT, "stream": "yes"}, "valid boolean"),
        ("/v1/chat/completions", {**CHAT, "stop": [1]}, "list of strings"),
        ("/v1/chat/completions", {**CHAT, "top_logprobs": 21, "logprobs": True}, "top_logprobs must be"),
        ("/v1/chat/completions", {**CHAT, "frequency_penalty": 1}, "not supported"),
        ("/v1/chat/completions", {**CHAT, "tools": [{"type": "function"}]}, "Tools are not supported"),
        ("/v1/chat/completions", {**CHAT, "response_format": {"type": "json_object"}}, "response_format"),
        ("/v1/completions", {}, "'missing', 'loc': ('body', 'prompt')"),
        ("/v1/completions", {"prompt": ""}, "prompt is empty"),
        ("/v1/completions", {"prompt": [1.5]}, "list of strings"),
        ("/v1/completions", {"prompt": "a", "echo": True}, "echo is not supported"),
        ("/v1/completions", {"prompt": [1024]}, "outside the vocabulary"),
        ("/generate", {}, "Either text or input_ids"),
        ("/generate", {"text": "a", "input_ids": [1]}, "Either text or input_ids"),
        ("/generate", {"input_ids": [[1], "a"]}, "list of integers"),
        ("/generate", {"input_ids": [-1]}, "outside the vocabulary"),
        ("/generate", {"text": "a", "sampling_params": 5}, "valid dictionary"),
        ("/generate", {"text": "a", "sampling_params": {"regex": "a+"}}, "regex is not supported"),
        ("/generate", {"text": "a", "return_logprob": True, "logprob_start_len": 0}, "of the prompt"),
    ],
)
def test_a_bad_request_is_a_400_that_says_why(block_8, path, body, words):
    reply = block_8.post(path, body)
    assert reply.status == 400
    assert set(reply.body) == {"object", "message", "type", "param", "code"}
    assert words in reply.body["message"]
    assert block_8.get("/health").status == 200


def test_unknown_paths_and_methods(block_8, plain):
    assert block_8.get("/nothing").status == 404
    assert block_8.get("/generate").status == 405
    assert block_8.get("/nothing").body == {"detail": "Not Found"}
    assert plain.get("/metrics").status == 200


def test_metrics_are_served_only_when_asked_for(block_16):
    assert block_16.get("/metrics").status == 404


def test_one_bad_prompt_of_several_starts_none(block_8):
    reply = block_8.post("/generate", {"text": [prompt(), "word " * 9000]})
    assert reply.status == 400
    assert block_8.get("/v1/loads").body["loads"][0]["num_running_reqs"] == 0


def test_with_a_key_only_health_is_open_and_the_key_is_nowhere(start, tmp_path):
    config = tmp_path / "keys.yaml"
    config.write_text("api-key: s3cret-key\nadmin-api-key: adm1n-key\nenable-metrics: true\n")
    server = start(*SPECULATIVE, "--config", str(config)).wait_ready()
    for path in ("/health", "/health_generate", "/metrics", "/ready"):
        assert server.get(path).status == 200, path
    for path in ("/v1/models", "/server_info", "/model_info", "/nothing", "/flush_cache"):
        assert server.get(path).status == 401, path
    assert server.get("/v1/models", Authorization="Bearer s3cret-ke").status == 401
    assert server.chat("hi").body == {"error": "Unauthorized"}
    for key in ("s3cret-key", "adm1n-key"):
        info = server.get("/server_info", Authorization=f"Bearer {key}")
        assert info.status == 200
        assert "s3cret" not in info.text + server.log
        assert "adm1n" not in info.text + server.log
