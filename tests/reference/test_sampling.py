"""Sampling draws what the target would draw: checked against exact probabilities, not against itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dflashctl.reference.request import SamplingParams
from dflashctl.reference.sampling import distribution, draw, log_softmax, uniform, verify

PROBS = np.array([0.5, 0.25, 0.15, 0.1])


def params(**more: float):
    return SamplingParams(max_new_tokens=10, **more)


def logits(*probs: float):
    return np.log(np.array(probs, np.float32))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, PROBS),
        ({"temperature": 0.5}, PROBS**2 / (PROBS**2).sum()),
        ({"top_k": 2}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_p": 0.74}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_p": 0.76}, [0.5 / 0.9, 0.25 / 0.9, 0.15 / 0.9, 0]),
        ({"top_p": 1e-9}, [1, 0, 0, 0]),
        ({"min_p": 0.4}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_k": 3, "min_p": 0.4}, [2 / 3, 1 / 3, 0, 0]),
        ({"top_k": 1}, [1, 0, 0, 0]),
    ],
)
def test_filters_leave_the_expected_distribution(how, expected):
    np.testing.assert_allclose(distribution(logits(*PROBS), params(**how)), expected, rtol=1e-6)


def test_filters_do_not_depend_on_the_order_of_the_vocabulary():
    shuffled = distribution(logits(0.1, 0.5, 0.15, 0.25), params(top_p=0.76))
    np.testing.assert_allclose(shuffled, [0, 0.5 / 0.9, 0.15 / 0.9, 0.25 / 0.9], rtol=1e-6)


def test_draw_gives_each_token_exactly_its_share_of_the_chances():
    steps = 20000
    drawn = [draw(PROBS, (step + 0.5) / steps) for step in range(steps)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / steps, PROBS, atol=1e-4)


def test_draw_never_returns_a_token_without_probability():
    probs = np.array([0.0, 0.3, 0.0, 0.7, 0.0])
    assert {draw(probs, chance) for chance in (0.0, 0.29999, 0.3, 0.5, 1 - 2**-53)} == {1, 3}


def rule(probs, draft):
    """The lossless rule for a deterministic proposal: (chance to accept it, distribution otherwise)."""
    rest = probs.copy()
    rest[draft] = 0
    return probs[draft], rest / rest.sum()


@pytest.mark.parametrize("draft", range(4))
def test_a_verified_position_follows_the_accept_or_draw_again_rule_exactly(monkeypatch, draft):
    """Over a fine grid of chances: accepted with p(draft), else the target without the draft, renormalised."""
    steps = 20000
    outcomes = {True: np.zeros(4), False: np.zeros(4)}
    for step in range(steps):
        monkeypatch.setattr(
            "dflashctl.reference.sampling.uniform", lambda *_, step=step: (step + 0.5) / steps
        )
        tokens = verify(logits(*PROBS)[None].repeat(2, 0), np.array([draft]), params(), 0)
        accepted = len(tokens) == 2
        assert accepted == (tokens[0] == draft)
        outcomes[accepted][tokens[0]] += 1
    accept, otherwise = rule(PROBS, draft)
    assert outcomes[True].sum() / steps == pytest.approx(accept, abs=1e-4)
    np.testing.assert_allclose(outcomes[False] / outcomes[False].sum(), otherwise, atol=3e-4)


def test_blocks_of_two_tokens_have_the_joint_distribution_of_plain_decoding():
    """A tiny Markov model over three tokens, decoded in blocks by a drafter that is mostly wrong."""
    chain = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.3, 0.4, 0.3]])
    logs, trials = np.log(chain).astype(np.float32), 12000
    joint = np.zeros((3, 3, 3))
    for seed in range(trials):
        tokens, choose = [0], params(seed=seed)
        while len(tokens) < 4:
            guess = (tokens[-1] + seed) % 3  # says the same at both positions
            rows = logs[[tokens[-1], guess, guess]]
            tokens += verify(rows, np.array([guess, guess]), choose, len(tokens))
        joint[tuple(tokens[1:4])] += 1
    exact = np.array(
        [chain[0, a] * chain[a, b] * chain[b, c] for a, b, c in itertools.product(range(3), repeat=3)]
    )
    expected = exact * trials
    chi_square = ((joint.ravel() - expected) ** 2 / expected).sum()
    assert chi_square < 60, "26 degrees of freedom: above 60 happens once in 6000 fair runs; seeds are fixed"


def test_greedy_keeps_the_agreed_prefix_and_adds_the_targets_own_token():
    rows = np.eye(5, dtype=np.float32)[[1, 2, 3, 4]]
    greedy = params(temperature=0)
    assert verify(rows, np.array([1, 2, 3]), greedy, 0) == [1, 2, 3, 4]
    assert verify(rows, np.array([1, 0, 3]), greedy, 0) == [1, 2]
    assert verify(rows, np.array([0, 2, 3]), greedy, 0) == [1]
    assert verify(rows[:1], np.array([], dtype=np.int64), greedy, 0) == [1]


def test_chances_are_even_and_belong_to_seed_and_position():
    chances = np.array([uniform(seed, position) for seed in range(100) for position in range(100)])
    assert len(set(chances)) == len(chances)
    assert ((chances >= 0) & (chances < 1)).all()
    counts = np.histogram(chances, bins=20, range=(0, 1))[0]
    assert ((counts - 500) ** 2 / 500).sum() < 50
    assert uniform(3, 4) == uniform(3, 4)
    assert uniform(-1, 0) != uniform(1, 0)


def test_log_probabilities_are_normalised_and_exact():
    logs = log_softmax(logits(*PROBS))
    np.testing.assert_allclose(logs, np.log(PROBS), rtol=1e-6)
    assert math.isclose(np.exp(logs).sum(), 1)
