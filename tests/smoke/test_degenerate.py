"""Loops are found, and what merely repeats a little is left alone."""

from __future__ import annotations

import pytest

from dflashctl.core.degenerate import find_loop

LOOPS = {
    "words": ("The answer is" + " and" * 40, 40),
    "one character": ("!" * 60, 60),
    "sentence": ("Start. " + "I will check the sum again. " * 8, 8),
    "special token": ("ok " + "[PAD]" * 30, 30),
    "in the middle": ("Start " + "ha " * 30 + "and then it ended quite normally.", 30),
}
HONEST = {
    "ruler": "Title\n" + "-" * 120 + "\ntext",
    "table": "| a | b |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n| 1 | 2 |",
    "short stutter": "no no no no, that is not it",
    "list": "\n".join(f"{n}. item number {n}" for n in range(1, 40)),
    "blank lines": "a" + "\n" * 80 + "b",
    "sums": "Let us solve this step by step.\nAna has 12 + 7 = 19 apples.\nThe answer is 19.\n#### 19",
    "empty": "",
}


@pytest.mark.parametrize("name", LOOPS)
def test_loop_is_found(name):
    text, rounds = LOOPS[name]
    loop = find_loop(text)
    assert loop is not None
    assert abs(loop.rounds - rounds) <= 1
    assert text[loop.start :].startswith(loop.unit * loop.rounds)


@pytest.mark.parametrize("name", HONEST)
def test_honest_text_has_no_loop(name):
    assert find_loop(HONEST[name]) is None
