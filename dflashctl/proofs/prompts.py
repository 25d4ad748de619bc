"""Prompts for proofs: word problems with known answers, which every instruct model and the tiny pair can do."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace

from dflashctl.reference.problems import problem

_SEED = 20260
_THOUGHT_TOKENS = 256


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """`answer` is the number that a right text names, None where there is no single one.

    `thinking` None leaves the template's own default.
    """

    id: str
    text: str
    answer: str | None = None
    max_tokens: int | None = None
    thinking: bool | None = None


def problems(count: int, seed: int = _SEED) -> tuple[Prompt, ...]:
    """`count` word problems, the same ones for the same seed."""
    source = random.Random(seed)  # noqa: S311 - test questions, not secrets
    made = [problem(source) for _ in range(count)]
    return tuple(
        Prompt(id=f"problem-{index}", text=question, answer=solution.rpartition("#### ")[2])
        for index, (question, solution) in enumerate(made)
    )


_FREE = (
    ("code", "Write a Python function add_items that sums a list."),
    ("list", "Name the months of the year in order, one on each line."),
    ("prose", "Describe in one paragraph how a bicycle stays upright."),
    ("copy", "Repeat this sentence three times: the quick brown fox jumps over the lazy dog."),
)


def losslessness_prompts(*, reasoning: bool) -> tuple[Prompt, ...]:
    """What the texts with and without speculation are compared on: sums, code, a list, prose, copying.

    A model that reasons is asked with thinking on and off as well: faults have shown in one of the two only.
    """
    plain = (*problems(8), *(Prompt(id=name, text=text) for name, text in _FREE))
    if not reasoning:
        return plain
    switched = (
        replace(prompt, id=f"{prompt.id}/{word}", thinking=thinking, max_tokens=_THOUGHT_TOKENS)
        for thinking, word in ((True, "thinking"), (False, "not-thinking"))
        for prompt in plain[4:10]
    )
    return (*plain, *switched)


def long_prompt(nonce: str, words: int) -> Prompt:
    """A prompt of about `words` words that no cache has seen (`nonce` comes first), ending in a problem."""
    asked = problems(1, seed=_SEED + 1)[0]
    source = random.Random(nonce)  # noqa: S311
    filler: list[str] = []
    while sum(len(sentence.split()) for sentence in filler) < words:
        filler.append(problem(source)[0].replace("How many", "Nobody asks how many"))
    return Prompt(id="long", text=f"Note {nonce}. {' '.join(filler)}\n{asked.text}", answer=asked.answer)


def names_answer(text: str, answer: str | None) -> bool:
    """True when the number stands in the text on its own."""
    return answer is not None and answer in re.findall(r"\d+", text.replace(",", ""))
