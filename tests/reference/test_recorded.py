"""The recorded problems give SGLang's accept lengths and SGLang's texts, with speculation and without."""

from __future__ import annotations

import statistics

import pytest

from .running import SPECULATIVE, prompt

ALLOWED_TO_DIFFER = 2  # of 60: SGLang computed in bfloat16, the reference engine in float32


def run(server, problems, **more: object):
    """Ask all at once: the server computes them in batches of up to 48."""
    return server.generate([prompt(row["question"]) for row in problems], **more)


@pytest.fixture(scope="module")
def answers(block_8, block_16, problems):
    """What each server says to each problem; "alone" is block 16's server asked not to speculate."""
    return {
        8: run(block_8, problems),
        16: run(block_16, problems),
        "alone": run(block_16, problems, speculation=False),
    }


@pytest.mark.parametrize(("block", "mean"), [(8, 7.330), (16, 13.529)])
def test_accept_lengths_are_those_of_sglang(answers, problems, block, mean):
    infos = [answer["meta_info"] for answer in answers[block]]
    assert statistics.mean(info["spec_accept_length"] for info in infos) == pytest.approx(mean, rel=0.02)
    pairs = zip(infos, problems, strict=True)
    different = sum(info["spec_verify_ct"] != row[f"verify_{block}"] for info, row in pairs)
    assert different <= ALLOWED_TO_DIFFER


@pytest.mark.parametrize("block", [8, 16])
def test_the_figures_of_a_request_agree_with_each_other(answers, block):
    for answer in answers[block]:
        info = answer["meta_info"]
        histogram = info["spec_correct_drafts_histogram"]
        assert info["completion_tokens"] == len(answer["output_ids"])
        assert info["spec_accept_length"] == info["completion_tokens"] / info["spec_verify_ct"]
        assert len(histogram) == block
        assert sum(histogram) == info["spec_verify_ct"]
        assert info["spec_num_proposed_drafts"] == info["spec_verify_ct"] * (block - 1)
        assert (
            sum(drafts * times for drafts, times in enumerate(histogram)) == info["spec_num_correct_drafts"]
        )


@pytest.mark.parametrize("how", [8, 16, "alone"])
def test_texts_are_those_of_sglang(answers, problems, how):
    pairs = zip(answers[how], problems, strict=True)
    assert sum(answer["text"] != row["text"] for answer, row in pairs) <= ALLOWED_TO_DIFFER


def test_one_request_at_a_time_gives_what_a_batch_gives(block_16, answers, problems):
    for row, expected in zip(problems[:8], answers[16], strict=False):
        found = block_16.generate(prompt(row["question"]))
        assert found["output_ids"] == expected["output_ids"]
        assert found["meta_info"]["spec_verify_ct"] == expected["meta_info"]["spec_verify_ct"]


@pytest.mark.parametrize("block", [8, 16])
def test_speculation_does_not_change_a_single_token(answers, block):
    assert all("spec_verify_ct" not in answer["meta_info"] for answer in answers["alone"])
    for speculated, alone in zip(answers[block], answers["alone"], strict=True):
        assert speculated["output_ids"] == alone["output_ids"]


def test_speculation_does_not_change_sampled_texts_of_the_same_seed(block_8, block_16, plain, problems):
    for seed, row in enumerate(problems[:10]):
        params = {"temperature": 1.5, "top_p": 0.95, "top_k": 50, "sampling_seed": seed, "max_new_tokens": 60}
        ask = {"text": prompt(row["question"]), "params": params}
        assert len({server.generate(**ask)["text"] for server in (block_8, block_16, plain)}) == 1


def test_a_narrow_draft_window_costs_accept_length_and_no_text(start, problems):
    server = start(*SPECULATIVE, "--speculative-draft-window-size", "16").wait_ready()
    answers = run(server, problems[:10])
    assert [answer["text"] for answer in answers] == [row["text"] for row in problems[:10]]
    narrow = statistics.mean(answer["meta_info"]["spec_accept_length"] for answer in answers)
    wide = statistics.mean(row["tokens"] / row["verify_16"] for row in problems[:10])
    assert 1 < narrow < wide
    assert "draft_window_size=16" in server.log
