"""A speed-up is speculation's alone: the same turns on both sides, or it says which."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.commands.bench_verdict import report_of, with_speedups
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_record import RequestError
from dflashctl.env import Env
from tests.bench_report.made_runs import record, result, run


def cut(number: int, *, failed: int = 0, step_s: float = 0.02, **changes):
    """The first `number` of 30 turns: 15 slow ones and 15 of twice the rate; the last `failed` of them failed."""
    records = [record(i, step_s=step_s / (1 + i // 15)) for i in range(number)]
    bad = [replace(r, error=RequestError.CONNECT) for r in records[number - failed :]]
    return run([*records[: number - failed], *bad], **changes)


@pytest.mark.parametrize(
    ("spec", "base", "shared"),
    [
        (cut(30, step_s=0.01), cut(30, speculation=False), None),
        (cut(30, step_s=0.01), cut(16, speculation=False), 16),
        (cut(16, step_s=0.01), cut(30, speculation=False), 16),
        (cut(30, failed=12, step_s=0.01), cut(30, speculation=False), 18),
    ],
    ids=["whole", "baseline cut", "cut", "failed"],
)
def test_a_speed_up_is_over_the_turns_that_both_finished(spec, base, shared):
    made, _ = with_speedups([spec, base])
    assert made.speedup.per_request == pytest.approx(2.0, rel=0.01)
    assert made.speedup.shared_turns == shared
    assert (made.speedup.aggregate is None) is (shared is not None)


def test_two_runs_that_share_no_turn_have_no_speed_up():
    late = run([record(i) for i in range(20, 24)])
    made, _ = with_speedups([late, cut(8, speculation=False)])
    assert made.speedup is None


@pytest.mark.parametrize("dataset", ["random", "shared-prefix", "gsm8k"])
def test_a_speed_up_over_other_texts_is_told(tmp_path, dataset):
    changes = {"dataset": dataset, "step_s": 0.01}
    runs = with_speedups([cut(30, **changes), cut(30, **changes, speculation=False)])
    report = report_of(Env(cwd=tmp_path), BenchOptions(), result(*runs), tmp_path / "run.json", None)
    assert any("made anew" in f.summary for f in report.findings) is (dataset != "gsm8k")


@pytest.mark.parametrize(("number", "told"), [(30, 0), (16, 1)])
def test_a_speed_up_of_a_part_is_told(tmp_path, number, told):
    runs = with_speedups([cut(number, step_s=0.01), cut(30, speculation=False)])
    report = report_of(Env(cwd=tmp_path), BenchOptions(), result(*runs), tmp_path / "run.json", None)
    assert len([f for f in report.findings if "did not finish the same turns" in f.summary]) == told
