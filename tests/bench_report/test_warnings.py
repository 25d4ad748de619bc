"""What may have spoiled a run is said, and what has not is not."""

from __future__ import annotations

from dataclasses import replace

from dflashctl.core.bench_samples import run_warnings
from dflashctl.core.bench_setting import GpuReading
from tests.bench_report.made_runs import record


def warnings(records, *, mismatches=0, looping=(), readings=(), in_flight=1):
    return " | ".join(run_warnings(records, mismatches, looping, readings, in_flight))


def test_a_sound_run_has_none():
    assert warnings([record(i) for i in range(40)]) == ""


def test_a_run_that_speeds_up_was_not_warm():
    records = [record(i, step_s=0.02 if i < 20 else 0.01) for i in range(40)]
    assert "the second half decoded +" in warnings(records)


def test_the_ends_of_a_batch_are_no_drift():
    ends = [record(i, step_s=0.002 if i >= 32 else 0.01) for i in range(40)]
    assert warnings(ends, in_flight=8) == ""


def test_loops_empty_answers_mismatches_and_throttling_are_named():
    empty = [replace(record(i), text="", finish_reason="length") for i in range(10)]
    reading = GpuReading(at_s=0.0, index=0, throttle_reasons=("gpu_idle", "sw_thermal_slowdown"))
    told = warnings(empty, mismatches=2, looping=("a",), readings=(reading,))
    for words in (
        "1 answers fell into a loop",
        "raise --max-tokens",
        "2 sampled chunks",
        "sw_thermal_slowdown",
    ):
        assert words in told
    assert "gpu_idle" not in told
