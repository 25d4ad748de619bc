"""Several requests move on together, and one that is dropped frees its place at once."""

from __future__ import annotations

import http.client
import json
import threading
from itertools import pairwise

import pytest

from .running import SPECULATIVE, Stream, in_threads, prompt, wait_until

ENDLESS = {"temperature": 1.0, "max_new_tokens": 3000, "ignore_eos": True}


def load_of(server):
    load = server.get("/v1/loads").body["loads"][0]
    return load["num_running_reqs"], load["num_waiting_reqs"]


def computed(server):
    """How many tokens the server has generated for requests that have ended."""
    lines = server.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("sglang:generation_tokens_total"))


def test_eight_streams_interleave(block_8):
    order, lock = [], threading.Lock()

    def follow(name):
        body = {
            "text": prompt(),
            "sampling_params": {**ENDLESS, "max_new_tokens": 150, "sampling_seed": name},
        }
        for _ in Stream(block_8, "/generate", body):
            with lock:
                order.append(name)

    in_threads(*[lambda name=name: follow(name) for name in range(8)])
    first_end = min(len(order) - order[::-1].index(name) for name in range(8))
    assert set(order[:first_end]) == set(range(8)), "each had begun before the first was done"
    switches = sum(one != other for one, other in pairwise(order))
    assert switches > len(order) / 4


def test_answers_do_not_depend_on_the_company(block_8, problems):
    alone = [block_8.generate(prompt(row["question"]))["text"] for row in problems[:8]]
    together = [""] * 8

    def ask(index):
        together[index] = block_8.generate(prompt(problems[index]["question"]))["text"]

    in_threads(*[lambda index=index: ask(index) for index in range(8)])
    assert together == alone


def test_a_long_prompt_does_not_stop_the_others(start):
    server = start(*SPECULATIVE, "--chunked-prefill-size", "64").wait_ready()
    stream = Stream(server, "/generate", {"text": prompt(), "sampling_params": ENDLESS})
    chunks = iter(stream)
    next(chunks)
    done = threading.Event()

    def long_one():
        server.generate("word " * 900, params={"max_new_tokens": 1})
        done.set()

    thread = threading.Thread(target=long_one)
    thread.start()
    between = 0
    while not done.is_set():
        next(chunks)
        between += 1
    thread.join()
    stream.close()
    assert between >= 20, "3600 tokens are more than 56 chunks, and each is one step of the stream as well"


def test_requests_beyond_the_limit_wait_for_their_turn(start):
    server = start(*SPECULATIVE, "--max-running-requests", "2").wait_ready()
    streams = [Stream(server, "/generate", {"text": prompt(), "sampling_params": ENDLESS}) for _ in range(2)]
    for stream in streams:
        next(iter(stream))
    answer = []
    thread = threading.Thread(target=lambda: answer.append(server.generate(prompt())))
    thread.start()
    wait_until(lambda: load_of(server) == (2, 1), "two run and one waits")
    assert not answer
    assert server.get("/health").status == 200, "a probe needs no free place"
    streams[0].close()
    thread.join()
    assert answer[0]["text"].endswith("#### 19")
    assert answer[0]["meta_info"]["queue_time"] > 0
    streams[1].close()
    wait_until(lambda: load_of(server) == (0, 0), "both places are free again")


def test_a_client_that_leaves_frees_its_place(block_8):
    stream = Stream(block_8, "/v1/completions", {"prompt": prompt(), "max_tokens": 3000, "ignore_eos": True})
    next(iter(stream))
    assert load_of(block_8) == (1, 0)
    before = computed(block_8)
    stream.close()
    wait_until(lambda: load_of(block_8) == (0, 0), "the place is free")
    assert computed(block_8) - before < 1500, "it was dropped, not run to its end"


def test_a_client_that_hangs_up_before_a_whole_answer_frees_its_place(block_8):
    connection = http.client.HTTPConnection("127.0.0.1", block_8.port)
    connection.request("POST", "/generate", json.dumps({"text": prompt(), "sampling_params": ENDLESS}))
    wait_until(lambda: load_of(block_8) == (1, 0), "it runs")
    before = computed(block_8)
    connection.close()
    wait_until(lambda: load_of(block_8) == (0, 0), "the place is free")
    assert computed(block_8) - before < 1500, "it was dropped, not run to its end"


def test_a_request_can_be_aborted_by_name_and_all_at_once(block_8):
    for how in ({"rid": "mine"}, {"abort_all": True}):
        stream = Stream(block_8, "/generate", {"text": prompt(), "rid": "mine", "sampling_params": ENDLESS})
        chunks = iter(stream)
        next(chunks)
        duplicate = block_8.post("/generate", {"text": prompt(), "rid": "mine"})
        assert (duplicate.status, "Duplicate request ID" in duplicate.text) == (400, True)
        assert block_8.post("/flush_cache", {}).status == 400, "refused while a request runs"
        assert block_8.post("/abort_request", how).status == 200
        *_, last, end = chunks
        assert end == "[DONE]"
        assert last["meta_info"]["finish_reason"]["type"] == "abort"
    assert block_8.post("/flush_cache", {}).status == 200


def test_metrics_count_what_happened(start):
    server = start(*SPECULATIVE, "--enable-metrics", "--decode-log-interval", "2").wait_ready()

    def metric(name, **labels: str):
        for line in server.get("/metrics").text.splitlines():
            wanted = [f'{key}="{value}"' for key, value in labels.items()]
            if line.startswith(f"sglang:{name}{{") and all(label in line for label in wanted):
                return float(line.split()[-1])
        raise AssertionError(name)

    assert metric("num_requests_total", is_streaming="false") == 0, "the warm-up does not count"
    server.get("/health_generate")
    answer = server.generate(prompt())["meta_info"]
    list(Stream(server, "/generate", {"text": prompt(), "sampling_params": {"temperature": 0}}))
    wait_until(lambda: metric("num_requests_total", is_streaming="true") == 1, "the stream is counted")
    assert metric("num_requests_total", is_streaming="false") == 1
    assert metric("prompt_tokens_total", is_streaming="true") == answer["prompt_tokens"]
    assert metric("generation_tokens_total", is_streaming="false") == answer["completion_tokens"]
    assert metric("spec_verify_calls_total") == 2 * answer["spec_verify_ct"]
    assert metric("spec_accept_length") > 1
    assert metric("time_to_first_token_seconds_count", is_streaming="true") == 1
    assert metric("time_to_first_token_seconds_bucket", is_streaming="true", le="+Inf") == 1
    assert metric("inter_token_latency_seconds_count") == 2 * (answer["completion_tokens"] - 1)
    assert metric("e2e_request_latency_seconds_sum", is_streaming="false") > 0
    assert "accept len: " in server.log
    state = server.get("/server_info").body["internal_states"][0]
    per_step = 1 + answer["spec_num_correct_drafts"] / answer["spec_verify_ct"]
    assert state["avg_spec_accept_length"] == pytest.approx(per_step, rel=0.3)
