"""Verdicts on divergences, as a table."""

from __future__ import annotations

import json

import pytest

from dflashctl.core.errors import UsageProblem
from dflashctl.core.lossless import Generation, Verdict, first_divergence, judge
from dflashctl.core.reference_run import ReferenceRun, SavedPrompt, read_reference
from dflashctl.core.replies import TokenChoice
from dflashctl.core.report import to_json


def token(text: str, second: str = " x", gap: float = 5.0) -> TokenChoice:
    top = ((text.encode(), -0.1), (second.encode(), -0.1 - gap))
    return TokenChoice(token=text.encode(), logprob=-0.1, top=top)


def told(*tokens: TokenChoice) -> Generation:
    return Generation(text=b"".join(t.token for t in tokens).decode(), tokens=tokens)


REFERENCE = told(token("The"), token(" cat", " dog", gap=0.1), token(" sat", " ran", gap=4.0))


# As SGLang tells a tie: in any order, the chosen one not the first.
TIED = ((b" dog", -1.9), (b" cat", -1.9), (b" cow", -1.95), (b" cower", -4.0), (b" pig", -5.0))
MANY = told(token("The"), TokenChoice(token=b" cat", logprob=-1.9, top=TIED), token(" sat"))


@pytest.mark.parametrize(
    ("name", "speculative", "reference", "verdict"),
    [
        ("equal", "The cat sat", REFERENCE, Verdict.EQUAL),
        ("second choice of a near tie", "The dog sat", REFERENCE, Verdict.NEAR_TIE),
        ("near tie, but neither of the two", "The cow sat", REFERENCE, Verdict.UNEXPLAINED),
        ("near tie of three, the third", "The cow sat", MANY, Verdict.NEAR_TIE),
        ("near tie of three, the one listed first", "The dog sat", MANY, Verdict.NEAR_TIE),
        ("near tie of three, but one far below", "The pig sat", MANY, Verdict.FAULT),
        ("near tie of three, but none that was told", "The ant sat", MANY, Verdict.FAULT),
        ("a token that begins like another", "The cower sat", MANY, Verdict.FAULT),
        ("confident", "The cat ran", REFERENCE, Verdict.FAULT),
        ("no margins and no noise", "The dog", Generation(text="The cat"), Verdict.UNEXPLAINED),
        ("cut short where the reference went on surely", "The cat", REFERENCE, Verdict.FAULT),
        ("goes on where the reference ended", "The cat sat on", REFERENCE, Verdict.UNEXPLAINED),
    ],
)
def test_verdict(name, speculative, reference, verdict):
    found = judge(name, (Generation(text=speculative),), (reference,))
    assert found.verdict is verdict, found


def test_noise_excuses_only_what_has_no_margin():
    twice = (Generation(text="The dog"), Generation(text="The cow"))
    assert judge("p", twice, (Generation(text="The cat"),)).verdict is Verdict.NOISE
    confident = (Generation(text="The cat ran"), Generation(text="The cat sat"))
    found = judge("p", confident, (REFERENCE,))
    assert (found.verdict, found.noisy) == (Verdict.FAULT, True)


def test_tokens_of_both_sides_are_compared_as_tokens():
    one = told(token("ab"), token("c"))
    other = told(token("a", "ab", gap=0.05), token("bd"))
    found = first_divergence(one, other)
    assert found is not None
    assert (found.at_character, found.token_index) == (2, 0)
    assert found.behind_nats == pytest.approx(0.05)


def test_split_characters_align_by_bytes():
    euro = "€".encode()
    reference = Generation(
        text="5 €!",
        tokens=(
            token("5"),
            TokenChoice(token=b" " + euro[:1], logprob=0.0),
            TokenChoice(token=euro[1:], logprob=0.0),
            token("!", "?", gap=0.2),
        ),
    )
    found = first_divergence(Generation(text="5 €?"), reference)
    assert found is not None
    assert found.token_index == 3
    assert (found.margin_nats, found.behind_nats) == (pytest.approx(0.2), pytest.approx(0.2))


def test_threshold_is_inclusive_and_can_be_moved():
    reference = told(token("a", "b", gap=0.5))
    other = (Generation(text="b"),)
    assert judge("p", other, (reference,)).verdict is Verdict.FAULT
    assert judge("p", other, (reference,), near_tie_nats=0.5).verdict is Verdict.NEAR_TIE


def test_a_saved_run_comes_back_as_it_was():
    run = ReferenceRun(
        model="m", engine_version=None, prompts=(SavedPrompt(id="p", prompt="hi", generations=(REFERENCE,)),)
    )
    document = json.loads(json.dumps(to_json(run)))
    assert read_reference(document, "run.json") == run


@pytest.mark.parametrize(
    "document", [None, [], {"kind": "x"}, {"kind": "dflashctl reference run", "schema_version": 9}]
)
def test_other_files_are_refused(document):
    with pytest.raises(UsageProblem, match=r"run\.json"):
        read_reference(document, "run.json")
