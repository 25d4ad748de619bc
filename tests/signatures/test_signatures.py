"""Every signature against its own cases, the others' cases, and the logs of real failures."""

from pathlib import Path

import pytest

from dflashctl.core.diagnose import Rank, diagnose
from dflashctl.edges.signature_store import load_signatures

ALL = load_signatures()
EXAMPLES = [(s, text) for s in ALL for text in s.examples]


@pytest.mark.parametrize("signature", ALL, ids=lambda s: s.id)
def test_a_signature_has_cases_of_both_kinds(signature):
    assert signature.examples
    assert signature.not_examples
    assert not [text for text in signature.not_examples if signature.search(text)]


@pytest.mark.parametrize(("signature", "text"), EXAMPLES, ids=lambda v: getattr(v, "id", None))
def test_an_example_is_explained_by_its_signature_alone(signature, text):
    assert [s.id for s in ALL if s.search(text)] == [signature.id]
    found = diagnose(text.splitlines(), ALL)
    assert found.id == signature.id
    assert "{" not in found.cause + found.fix
    assert found.evidence[-1] == text.splitlines()[-1]


def test_the_first_fatal_cause_wins_over_later_ones_and_consequences():
    lines = [
        "Subprocess scheduler_0 (pid=4711) crashed with exit code -9. Triggering SIGQUIT for cleanup...",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 11.58 GiB.",
        "CUDA error: an illegal memory access was encountered",
    ]
    assert diagnose(lines, ALL).id == "cuda_out_of_memory"
    assert diagnose(lines[:1], ALL).id == "scheduler_died"
    assert next(s for s in ALL if s.id == "scheduler_died").rank is Rank.CONSEQUENCE


def test_an_unknown_exception_is_told_in_its_own_words():
    lines = [
        "[2026-11-30 01:38:47] Scheduler hit an exception: Traceback (most recent call last):",
        "  File x",
        "ZeroDivisionError: by zero",
        "ValueError: later",
    ]
    found = diagnose(lines, ALL)
    assert (found.id, found.cause) == ("unknown", "ZeroDivisionError: by zero")
    assert not found.permanent


def test_an_exception_that_was_not_traced_is_no_cause():
    assert diagnose(["ValueError: mentioned in passing"], ALL) is None
    assert diagnose(["The server is fired up and ready to roll!"], ALL) is None


@pytest.mark.parametrize(
    ("log", "cause", "words"),
    [
        ("oom", "cuda_out_of_memory", "11.58 GiB"),
        ("wrongdraft", "draft_shape", "does not fit the target"),
        ("badbackend", "backend_unfit", "this kind of GPU"),
        ("scheduler-killed", "scheduler_died", "pid 1175"),
    ],
)
def test_the_log_of_a_real_failure_is_explained(log, cause, words):
    lines = (Path(__file__).parent / "logs" / f"{log}.log").read_text().splitlines()
    found = diagnose(lines, ALL)
    assert found.id == cause
    assert words in found.cause
    assert found.evidence
