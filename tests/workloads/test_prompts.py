"""Every workload turns genuine records into exactly the messages that the published harness sends."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dflashctl.core.bench_shared import FOR_CAPACITY, MADE_ANEW
from dflashctl.core.errors import UsageProblem
from dflashctl.core.workload import BadRecord, WorkloadOptions, as_openai, prompts_hash, shuffled, text_of
from dflashctl.workloads import WORKLOADS, longbench_v2, tiny_math, workload
from dflashctl.workloads.prompts_file import read_prompts

DATA = Path(__file__).parent / "data"
BOXED = "\nPlease reason step by step, and put your final answer within \\boxed{}."


def records(name: str) -> tuple[dict, ...]:
    text = (DATA / f"{name.replace('-', '_')}.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def asked(name: str, source: str | None = None, **options: object):
    return WORKLOADS[name].prompts(records(source or name), WorkloadOptions(**options))


def test_gsm8k_is_question_and_boxed_instruction():
    source = records("gsm8k")
    for prompt in asked("gsm8k"):
        index = int(prompt.id.rpartition("/")[2])
        assert prompt.messages == (("user", source[index]["question"] + BOXED),)


def test_math500_is_problem_and_boxed_instruction():
    (prompt,) = asked("math500")
    assert prompt.messages[0][1].startswith("Suppose $\\sin D = 0.7$")
    assert prompt.messages[0][1].endswith("[/asy]" + BOXED)


def test_humaneval_is_the_code_block_after_one_sentence():
    prompt = next(p for p in asked("humaneval") if p.id == "humaneval/4")
    assert prompt.messages[0][1] == (
        "Write a solution to the following problem and make sure that it passes the tests:\n"
        "```python\n\n\ndef add(x: int, y: int):\n"
        '    """Add two numbers x and y\n    >>> add(2, 3)\n    5\n    >>> add(5, 7)\n    12\n    """\n\n```'
    )


def test_mbpp_is_the_bare_sentence():
    texts = {p.messages[0][1] for p in asked("mbpp")}
    assert "Write a python function to identify non-prime numbers." in texts


def test_mt_bench_sends_both_turns():
    (prompt,) = asked("mt-bench")
    assert prompt.messages[0][1].startswith("Compose an engaging travel blog post")
    assert prompt.follow_ups == ("Rewrite your previous response. Start every sentence with the letter A.",)


def test_longbench_is_context_question_and_choices():
    (prompt,) = asked("longbench-v2")
    text = prompt.messages[0][1]
    assert text.startswith("Contents\nPreface.")
    head, _, tail = text.partition("\n\nQuestion: ")
    assert head == records("longbench-v2")[0]["context"]
    assert [line[:3] for line in tail.splitlines()[1:]] == ["A. ", "B. ", "C. ", "D. ", "Ans"]
    assert tail.endswith("\nAnswer:")
    assert prompt.bucket == "up to 16k"


def test_the_order_is_the_published_harness_s():
    assert [p.id for p in asked("gsm8k")] == [f"gsm8k/{i}" for i in shuffled(5, 42)]
    assert shuffled(5, 42) == [3, 1, 2, 4, 0]


@pytest.mark.parametrize("name", [n for n, w in WORKLOADS.items() if w.SOURCE])
def test_more_prompts_begin_with_the_same_ones(name):
    source = {"humaneval-long": "humaneval"}.get(name, name)
    options = {"prefix_tokens": 500} if name == "humaneval-long" else {}
    few, many = asked(name, source, count=2, **options), asked(name, source, count=5, **options)
    assert many[: len(few)] == few
    assert len({p.id for p in many}) == len(many)


def test_humaneval_long_has_a_cold_prefix_of_its_own_without_the_answer():
    source = records("humaneval")
    found = asked("humaneval-long", "humaneval", prefix_tokens=2000, characters_per_token=3.0, nonce="run-a")
    again = asked("humaneval-long", "humaneval", prefix_tokens=2000, characters_per_token=3.0, nonce="run-b")
    for prompt in found:
        index = int(prompt.id.rpartition("/")[2])
        text = prompt.messages[0][1]
        prefix, _, question = text.partition("\n\nWrite a solution to the following problem")
        assert len(prefix) == 6000
        assert source[index]["canonical_solution"] not in prefix
        assert source[index]["prompt"] in question
    starts = {p.messages[0][1][:60] for p in (*found, *again)}
    assert len(starts) == 2 * len(found)


def test_longbench_keeps_to_the_server_s_context_and_takes_buckets_in_turn():
    made = tuple(
        {**records("longbench-v2")[0], "context": "word " * size}
        for size in (3000, 3000, 20000, 40000, 90000)
    )
    options = WorkloadOptions(characters_per_token=5.0)
    buckets = [p.bucket for p in longbench_v2.prompts(made, options)]
    assert buckets[:4] == ["up to 16k", "up to 32k", "up to 64k", "up to 128k"]
    small = WorkloadOptions(characters_per_token=5.0, context_tokens=32768, output_tokens=512)
    assert {p.bucket for p in longbench_v2.prompts(made, small)} == {"up to 16k", "up to 32k"}


def test_tiny_math_is_what_was_recorded():
    found = tiny_math.prompts((), WorkloadOptions())
    assert len(found) == 60
    assert found[0].messages[0][1] == "Noah has 28 apples and loses 14 of them. How many apples are left?"
    assert found[1].messages[0][1].startswith("Quin has 17 apples. Pia gives Quin 7 more apples.")
    assert tiny_math.prompts((), WorkloadOptions(count=64))[:60] == found


def test_random_prompts_differ_from_their_first_words_and_have_the_length_asked_for():
    found = WORKLOADS["random"].prompts(
        (), WorkloadOptions(count=20, input_tokens=100, characters_per_token=4.0)
    )
    assert {len(p.messages[0][1]) for p in found} == {400}
    assert len({p.messages[0][1][:20] for p in found}) == 20


def test_shared_prefix_groups_share_exactly_the_prefix():
    options = WorkloadOptions(count=6, groups=2, prefix_tokens=50, input_tokens=20, characters_per_token=4.0)
    found = WORKLOADS["shared-prefix"].prompts((), options)
    assert len({p.messages[0] for p in found}) == 2
    assert found[0].messages[0] == found[2].messages[0] != found[1].messages[0]
    assert len({p.messages[1] for p in found}) == 6


def test_a_record_of_another_shape_is_named():
    with pytest.raises(BadRecord, match="'question'"):
        WORKLOADS["gsm8k"].prompts(({"text": "x"},), WorkloadOptions())


def test_unknown_workload_gets_the_nearest_name():
    with pytest.raises(UsageProblem) as caught:
        workload("gsm8")
    assert "gsm8k" in (caught.value.hint or "")


def test_equal_hashes_mean_equal_prompts():
    assert prompts_hash(asked("gsm8k")) == prompts_hash(asked("gsm8k"))
    assert prompts_hash(asked("gsm8k")) != prompts_hash(asked("gsm8k", seed=1))


def test_a_prompts_file_may_hold_three_shapes():
    text = (
        '{"id": "a", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}], "max_tokens": 9}\n'
        '\n[{"role": "user", "content": "bare"}]\n{"prompt": "plain"}\n'
    )
    one, two, three = read_prompts(text, "p.jsonl")
    assert (one.id, one.max_tokens, one.messages) == ("a", 9, (("system", "s"), ("user", "q")))
    assert (two.id, two.messages) == ("line-3", (("user", "bare"),))
    assert three.messages == (("user", "plain"),)


CALL = {"id": "c1", "type": "function", "function": {"name": "sum", "arguments": '{"a": 1}'}}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ({"role": "user", "content": "q"}, "q"),
        ({"role": "user", "content": ""}, ""),
        ({"role": "user", "content": "q", "name": "ana"}, "q"),
        ({"role": "user", "content": [{"type": "text", "text": "hello"}]}, "hello"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, json.dumps([CALL])),
        ({"role": "assistant", "tool_calls": [CALL]}, json.dumps([CALL])),
        ({"role": "assistant", "content": "so", "tool_calls": [CALL]}, f"so\n{json.dumps([CALL])}"),
        ({"role": "tool", "content": "3", "tool_call_id": "c1"}, "3"),
    ],
    ids=json.dumps,
)
def test_a_message_of_a_prompts_file_is_passed_on_as_it_is(message, said):
    (prompt,) = read_prompts(json.dumps({"messages": [message]}), "p.jsonl")
    assert as_openai(prompt.messages[0]) == message
    assert text_of(prompt.messages[0]) == said
    (other,) = read_prompts(json.dumps({"messages": [{**message, "role": "system"}]}), "p.jsonl")
    assert prompts_hash((prompt,)) != prompts_hash((other,))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no prompts"),
        *(
            (json.dumps([{"role": "user", **rest}]), words)
            for rest, words in (
                ({}, "text content"),
                ({"content": None}, "text content"),
                ({"content": []}, "text content"),
                ({"content": None, "tool_calls": []}, "text content"),
                ({"content": {"text": "a"}}, "text content"),
                ({"content": ["a"]}, "a part of type None"),
                (
                    {"content": [{"type": "image_url", "image_url": {"url": "x"}}]},
                    "a part of type 'image_url'",
                ),
                ({"content": [{"type": "text"}]}, "without a text"),
                ({"content": [{"type": "text", "text": 3}]}, "without a text"),
                ({"content": "a", "tool_calls": "sum"}, "tool_calls"),
                ({"content": None, "tool_calls": ["sum"]}, "tool_calls"),
            )
        ),
        ("{", r"p\.jsonl:1 is not JSON"),
        ('{"prompt": "a"}\n{"x": 1}', r"p\.jsonl:2 has no messages"),
        ('{"messages": [{"role": "robot", "content": "x"}]}', "role"),
        ('{"messages": [{"role": "user", "content": 3}]}', "text content"),
        ('{"prompt": "a", "max_tokens": 0}', "max_tokens 0"),
        ('{"prompt": "a", "id": "x"}\n{"prompt": "b", "id": "x"}', "two prompts"),
        ("3", "no messages"),
        ('{"prompt": "a"}\n' + "[" * 100_000, r"p\.jsonl:2 is not JSON: nested too deeply"),
        (
            '{"prompt": "a", "id": ' + "[" * 100_000 + "]" * 100_000 + "}",
            r"p\.jsonl:1 is not JSON: nested too deeply",
        ),
        ('{"prompt": "a", "max_tokens": ' + "[" * 900 + "]" * 900 + "}", r"p\.jsonl:1 "),
    ],
)
def test_a_bad_prompts_file_is_refused_with_its_line(text, words):
    with pytest.raises(UsageProblem, match=words):
        read_prompts(text, "p.jsonl")


# JSON allows these inside a string as they are; str.splitlines() takes them for line ends.
@pytest.mark.parametrize(
    "mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"], ids=ascii
)
def test_only_a_line_feed_ends_a_line_of_a_prompts_file(mark):
    escaped = json.dumps(f"a{mark}b", ensure_ascii=mark < " ")
    one, two = read_prompts(f'{{"prompt": {escaped}}}\r\n{{"prompt": "c"}}\n', "p.jsonl")
    assert one.messages == (("user", f"a{mark}b"),)
    assert (two.id, two.messages) == ("line-2", (("user", "c"),))


def test_a_long_prompts_file_is_read_at_once():
    lines = [json.dumps({"id": f"p{n}", "prompt": "x"}) for n in range(50_000)]
    begun = time.process_time()
    assert len(read_prompts("\n".join(lines), "p.jsonl")) == 50_000
    assert time.process_time() - begun < 5  # a comparison of each id with each other takes a minute
    with pytest.raises(UsageProblem, match="two prompts with the id 'p7'"):
        read_prompts("\n".join([*lines, lines[7]]), "p.jsonl")


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_workloads_that_are_made_anew_are_known_by_name(name):
    """Each is made twice, as two runs would: the turns of those that come out the same may be paired by their ids."""
    chosen = WORKLOADS[name]
    source = records(name.removesuffix("-long")) if chosen.SOURCE else ()
    options = WorkloadOptions(count=4, input_tokens=20, prefix_tokens=40)
    first, second = (chosen.prompts(source, replace(options, nonce=nonce)) for nonce in ("one", "two"))
    assert [prompt.id for prompt in first] == [prompt.id for prompt in second]
    assert (first != second) is (name in MADE_ANEW)
    assert ("capacity" in chosen.SUMMARY) is (name in FOR_CAPACITY)
