"""What a client can ask for in one generation, in each of the three APIs."""

from __future__ import annotations

import math
from collections import Counter

import pytest

from .running import QUESTION, Stream, prompt

TEXT = (
    "Let us solve this step by step.\nAna starts with 12 apples. After Ben gives 7 more, Ana has 12 + 7 = 19 apples.\n"
    "The answer is 19.\n#### 19"
)
ACCENTS = "Zoé has 3 crêpes 😀"


def chunks_of(server, path, **body: object):
    found = list(Stream(server, path, body))
    assert found.pop() == "[DONE]"
    return found


def chat_stream(server, **more: object):
    messages = [{"role": "user", "content": QUESTION}]
    return chunks_of(server, "/v1/chat/completions", messages=messages, temperature=0, **more)


@pytest.mark.parametrize("stop", ["apples. After", "12 + 7", "is 1", "\n"])
@pytest.mark.parametrize("speculation", [True, False])
def test_a_stop_string_ends_the_text_before_it_wherever_blocks_cut_it(block_16, stop, speculation):
    reply = block_16.chat(QUESTION, stop=stop, speculation=speculation)
    choice = reply.body["choices"][0]
    assert choice["message"]["content"] == TEXT[: TEXT.index(stop)]
    assert (choice["finish_reason"], choice["matched_stop"]) == ("stop", stop)
    streamed = chat_stream(block_16, stop=[stop, "never said"], speculation=speculation)
    said = "".join(part["delta"]["content"] or "" for chunk in streamed for part in chunk["choices"])
    assert said == TEXT[: TEXT.index(stop)]


def test_a_stop_string_ends_the_count_of_tokens_with_it(block_16, plain):
    counts = {
        server.generate(prompt(), params={"stop": "12 + 7"})["meta_info"]["completion_tokens"]
        for server in (block_16, plain)
    }
    assert len(counts) == 1


def test_stop_tokens_ignore_eos_and_length(block_8):
    full = block_8.generate(prompt())
    ids = full["output_ids"]
    cut = block_8.generate(prompt(), params={"stop_token_ids": [ids[9]]})
    assert cut["output_ids"] == ids[: ids.index(ids[9]) + 1]
    assert cut["meta_info"]["finish_reason"] == {"type": "stop", "matched": ids[9]}
    beyond = block_8.generate(prompt(), params={"ignore_eos": True, "max_new_tokens": 60})
    assert beyond["output_ids"][: len(ids)] == ids
    assert beyond["meta_info"]["finish_reason"] == {"type": "length", "length": 60}
    for length in (1, 2, 9, 10):
        short = block_8.generate(prompt(), params={"max_new_tokens": length})
        assert short["output_ids"] == ids[:length]


def test_one_new_token_needs_no_verify_step(block_8):
    assert "spec_verify_ct" not in block_8.generate(prompt(), params={"max_new_tokens": 1})["meta_info"]


def test_special_tokens_are_hidden_unless_wanted(block_8):
    assert block_8.generate(prompt())["text"] == TEXT
    assert block_8.generate(prompt(), params={"skip_special_tokens": False})["text"] == f"{TEXT}<|im_end|>"


def test_prompts_may_be_tokens_or_lists_of_them(block_8, models):
    ids = list(models.tokenizer.encode(prompt()))
    assert (
        block_8.post("/generate", {"input_ids": ids, "sampling_params": {"temperature": 0}}).body["text"]
        == TEXT
    )
    both = block_8.post(
        "/generate", {"input_ids": [ids, ids[:20]], "sampling_params": {"temperature": 0}}
    ).body
    assert [item["meta_info"]["prompt_tokens"] for item in both] == [len(ids), 20]
    assert both[0]["text"] == TEXT
    text = block_8.post("/v1/completions", {"prompt": ids, "max_tokens": 99, "temperature": 0}).body
    assert text["choices"][0]["text"] == TEXT


def test_several_prompts_stream_side_by_side_with_their_indices(block_8):
    found = chunks_of(
        block_8, "/generate", text=[prompt(), prompt("Ben has 3 pens.")], sampling_params={"temperature": 0}
    )
    assert {chunk["index"] for chunk in found} == {0, 1}
    assert [chunk["text"] for chunk in found if chunk["index"] == 0][-1] == TEXT


def test_a_seed_repeats_a_sampled_answer_and_another_seed_does_not(block_8):
    def sampled(seed):
        return block_8.chat(QUESTION, temperature=2.0, seed=seed, max_tokens=40).body["choices"][0]["message"]

    assert sampled(7) == sampled(7)
    assert len({sampled(seed)["content"] for seed in range(4)}) > 1


def test_requests_without_a_seed_differ_from_each_other(block_8):
    answers = {block_8.generate(prompt(), params={"temperature": 2.0})["text"] for _ in range(4)}
    assert len(answers) > 1


def test_n_answers_are_sampled_apart_and_counted_together(block_8):
    body = block_8.chat(
        QUESTION, temperature=2.0, n=3, seed=1, max_tokens=30, return_spec_tokens_details=True
    ).body
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert len(set(texts)) > 1
    details = body["sglext"]["spec_tokens_details"]
    assert len(details) == 3
    assert body["usage"]["prompt_tokens"] == 31
    assert body["usage"]["completion_tokens"] == pytest.approx(
        sum(item["spec_accept_length"] * item["spec_verify_ct"] for item in details)
    )


def test_tokens_drawn_while_verifying_have_the_targets_probabilities(block_16, models):
    """The second token of 384 hot samples, drawn in a verify step, against the target's exact chances."""
    heat, drawn = 3.0, []
    for seed in (1000, 2000, 3000):
        params = {"temperature": heat, "n": 128, "max_new_tokens": 2, "sampling_seed": seed}
        found = block_16.post("/generate", {"text": prompt(), "sampling_params": params}).body
        drawn += [sample["output_ids"] for sample in found]
    common, count = Counter(first for first, _ in drawn).most_common(1)[0]
    body = {
        "input_ids": [*models.tokenizer.encode(prompt()), common],
        "sampling_params": {"max_new_tokens": 1},
        "return_logprob": True,
        "top_logprobs_num": 1024,
    }
    [top] = block_16.post("/generate", body).body["meta_info"]["output_top_logprobs"]
    weights = {token: math.exp(logprob / heat) for logprob, token, _ in top}
    best = max(weights, key=weights.__getitem__)
    chance = weights[best] / sum(weights.values())
    assert 0.1 < chance < 0.9
    assert count > 50
    seen = drawn.count([common, best])
    assert abs(seen - count * chance) < 4 * math.sqrt(count * chance * (1 - chance))


def test_log_probabilities_are_the_targets_with_and_without_speculation(block_16, plain):
    asked = {"return_logprob": True, "top_logprobs_num": 3, "return_text_in_logprobs": True}
    ours = block_16.generate(prompt(), **asked)["meta_info"]
    theirs = plain.generate(prompt(), **asked)["meta_info"]
    for mine, other in zip(ours["output_token_logprobs"], theirs["output_token_logprobs"], strict=True):
        assert mine[0] == pytest.approx(other[0], abs=1e-4)
        assert mine[1:] == other[1:]
    assert all(
        top[0][1] == chosen[1]
        for top, chosen in zip(ours["output_top_logprobs"], ours["output_token_logprobs"], strict=True)
    )
    assert ours["output_token_logprobs"][0][2] == "Let"


def test_log_probabilities_of_completions_line_up_with_the_text(block_8):
    body = {"prompt": prompt(), "max_tokens": 20, "temperature": 0, "logprobs": 2}
    whole = block_8.post("/v1/completions", body).body["choices"][0]
    marks = whole["logprobs"]
    for token, offset in zip(marks["tokens"], marks["text_offset"], strict=True):
        assert whole["text"][offset : offset + len(token)] == token
    streamed = [chunk["choices"][0]["logprobs"] for chunk in chunks_of(block_8, "/v1/completions", **body)]
    assert [offset for part in streamed for offset in part["text_offset"]] == marks["text_offset"]


def test_a_chat_stream_ends_with_figures_and_usage_after_the_text(block_8):
    found = chat_stream(
        block_8, stream_options={"include_usage": True}, return_spec_tokens_details=True, max_tokens=128
    )
    *text, details, usage = found
    assert text[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(chunk["choices"][0]["delta"]["content"] or "" for chunk in text) == TEXT
    assert text[-1]["choices"][0]["finish_reason"] == "stop"
    assert details["choices"] == usage["choices"] == []
    assert details["sglext"]["spec_tokens_details"]["spec_verify_ct"] == 8
    assert usage["usage"]["completion_tokens"] == 52
    assert all(chunk["usage"] is None for chunk in text)


@pytest.mark.parametrize("final", [True, False])
def test_a_chat_stream_counts_its_tokens_in_every_chunk_when_asked(block_8, final):
    options = {"continuous_usage_stats": True, "include_usage": final}
    opening, *text = chat_stream(block_8, stream_options=options, max_tokens=128)
    assert opening["usage"] is None
    running = [chunk["usage"]["completion_tokens"] for chunk in text]
    assert running == sorted(running)
    assert running[0] == 1  # prefill's
    assert running[-1] == 52
    assert all(
        u["total_tokens"] == u["prompt_tokens"] + u["completion_tokens"] for u in (c["usage"] for c in text)
    )
    assert (text[-1]["choices"] == []) is final


def test_without_speculation_there_are_no_figures_of_it(block_8):
    found = chat_stream(block_8, return_spec_tokens_details=True, speculation=False)
    assert all("sglext" not in chunk for chunk in found)
    body = block_8.chat(QUESTION, return_meta_info=True, custom_params={"speculation": False}).body
    assert not [key for key in body["choices"][0]["meta_info"] if key.startswith("spec_")]
    assert body["choices"][0]["message"]["content"] == TEXT


def test_text_is_never_cut_inside_a_character(block_8):
    """Sampled at a wild temperature after a prompt full of bytes, every chunk is valid and they add up."""
    params = {"temperature": 3.0, "sampling_seed": 11, "max_new_tokens": 120, "ignore_eos": True}
    whole = block_8.generate(prompt(ACCENTS), params=params)["text"]
    body = {"text": prompt(ACCENTS), "sampling_params": params}
    texts = [chunk["text"] for chunk in chunks_of(block_8, "/generate", **body)]
    assert texts[-1] == whole
    assert all(whole.startswith(text) for text in texts)


def test_the_prompt_keeps_its_characters(models):
    ids = models.tokenizer.chat([{"role": "user", "content": ACCENTS}], {})
    assert ACCENTS in models.tokenizer.decode(ids)


def test_message_parts_and_template_options(block_8):
    parts = [{"type": "text", "text": QUESTION[:10]}, {"type": "text", "text": QUESTION[10:]}]
    body = {"messages": [{"role": "user", "content": parts}], "temperature": 0}
    assert block_8.post("/v1/chat/completions", body).body["choices"][0]["message"]["content"] == TEXT
    bare = {**body, "chat_template_kwargs": {"add_generation_prompt": False}, "max_tokens": 1}
    assert block_8.post("/v1/chat/completions", bare).body["usage"]["prompt_tokens"] < 31


def test_more_tokens_than_the_context_has_are_cut_to_it(block_8):
    reply = block_8.generate(prompt(), params={"max_new_tokens": 100_000})
    assert reply["text"] == TEXT
