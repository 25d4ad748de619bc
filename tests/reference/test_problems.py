"""The word problems are those that the weights were trained on, to the letter."""

from __future__ import annotations

import hashlib
import json
import random

from dflashctl.reference.problems import KINDS, problem


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - a corpus, not a secret


def test_the_first_5000_problems_of_seed_0_are_the_ones_of_the_training():
    rng, digest = seeded(0), hashlib.sha256()
    for _ in range(5000):
        digest.update(json.dumps(problem(rng)).encode())
    assert digest.hexdigest() == "d1d22f0f458fcd525cf532c8c26f01286ca031638695dbfdb56538ac64448e65"


def test_the_recorded_problems_come_from_seed_4242(problems):
    rng = seeded(4242)
    assert [problem(rng) for _ in problems] == [(row["question"], row["want"]) for row in problems]


def test_each_kind_of_problem_is_reached():
    rng = seeded(1)
    openings = {problem(rng)[1].split("\n")[1].split(" ")[0] for _ in range(300)}
    assert len(openings) >= 3
    assert len(KINDS) == 6
