"""A real engine: exact counts streamed by chat and by /generate are the same, request by request."""

from __future__ import annotations

import pytest

from dflashctl.bench import BenchRequest, CountSource, LoadSpec, probe_counts, run_load, summarise
from dflashctl.bench.server import metrics_text
from dflashctl.core.accept import cross_check, turn_accept_length
from tests.reference.running import SPECULATIVE, Server

PROBLEMS = [
    "Noah has 28 apples and loses 14 of them. How many apples are left?",
    "Quin has 17 apples. Pia gives Quin 7 more apples. How many apples does Quin have now?",
    "Ana has 13 eggs and loses 7 of them. How many eggs are left?",
    "Wen fills 2 boxes with 20 keys each. How many keys are there in total?",
]
TOKENS_AND_STEPS = [(53, 7), (52, 8), (48, 6)]  # SGLang 0.5.17 on an H200, block 8


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    arguments = ("--enable-metrics", "--speculative-dflash-block-size", "8", *SPECULATIVE)
    server = Server(tmp_path_factory.mktemp("engine") / "log", *arguments)
    try:
        server.wait_ready()
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.kill()


def chat(i, text):
    body = {"messages": [{"role": "user", "content": text}], "max_tokens": 200, "temperature": 0}
    return BenchRequest(id=str(i), body=body)


def generate(i, text):
    prompt = f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    body = {"text": prompt, "sampling_params": {"max_new_tokens": 200, "temperature": 0}}
    return BenchRequest(id=str(i), body=body, api="generate")


def test_streamed_counts_equal_those_of_generate(engine):
    spec = LoadSpec(url=engine, concurrency=2, keep_text=True)
    assert probe_counts(spec, chat(0, PROBLEMS[0])) is CountSource.STREAM
    before = metrics_text(spec)
    streamed = run_load(spec, [chat(i, p) for i, p in enumerate(PROBLEMS)]).records
    check = cross_check(before, metrics_text(spec), streamed)
    native = run_load(spec, [generate(i, p) for i, p in enumerate(PROBLEMS)]).records
    for ours, theirs in zip(streamed, native, strict=True):
        assert (ours.error, theirs.error) == (None, None)
        assert (ours.completion_tokens, ours.spec, ours.text) == (
            theirs.completion_tokens,
            theirs.spec,
            theirs.text,
        )
        assert sum(theirs.chunk_tokens) == theirs.completion_tokens
        assert theirs.tokens_first_chunk == 1  # prefill's
        with_text = len(ours.chunk_tokens)  # an end token alone makes an event there, no content here
        assert ours.chunk_tokens == theirs.chunk_tokens[:with_text]
        assert sum(theirs.chunk_tokens[with_text:]) <= 1
    assert [(r.completion_tokens, r.spec.verify_steps) for r in streamed[:3]] == TOKENS_AND_STEPS
    assert summarise(streamed, None).accept_length.mean == pytest.approx(
        sum(turn_accept_length(r.completion_tokens, r.spec) for r in native) / len(native)
    )
    assert check.agrees
