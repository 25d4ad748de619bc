"""Comparing: intervals that know a change from noise, and refusals of what is unlike."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from dflashctl.core import bench_pairing
from dflashctl.core.bench_compare import Change, compare
from dflashctl.core.bench_judgement import judged, regressions
from dflashctl.core.bench_record import RequestError
from dflashctl.core.bench_runs import BenchResult, Unfinished
from dflashctl.core.bench_setting import GpuReading, ModelIdentity
from dflashctl.core.bench_shared import MADE_ANEW
from dflashctl.core.findings import Severity, errors
from dflashctl.core.report import to_json
from dflashctl.core.run_view import read_run_file
from tests.bench_report.made_runs import ORIGIN, record, run, run_file, spread, withheld


def changes(a, b, **options):
    (pair,) = compare(a, b, **options).pairs
    return pair, {change.metric: change for change in pair.changes}


def test_equal_runs_show_no_change():
    pair, found = changes(run_file(spread(20)), run_file(spread(20)))
    assert pair.refusals == ()
    assert pair.paired
    assert found["accept_length.mean"].relative == 0
    assert found["accept_length.mean"].change is Change.SAME


def test_a_real_loss_is_worse_and_over_the_limit():
    a, b = run_file(spread(20)), run_file(spread(24))
    _, found = changes(a, b)
    loss = found["accept_length.mean"]
    assert loss.change is Change.WORSE
    assert loss.interval.high < 0
    assert loss.relative == pytest.approx(-1 / 6, abs=0.02)
    assert any("accept_length.mean" in told for told in regressions(compare(a, b), 0.05))
    assert not any("accept_length.mean" in told for told in regressions(compare(a, b), 0.30))


def test_lower_latency_is_better():
    slow = run_file(run([record(i, ttft_s=0.2 + 0.001 * (i % 7)) for i in range(40)]))
    fast = run_file(run([record(i, ttft_s=0.1 + 0.001 * (i % 7)) for i in range(40)]))
    _, found = changes(slow, fast)
    assert found["ttft_ms.p50"].change is Change.BETTER
    assert found["ttft_ms.p50"].loss < 0


def test_noise_is_no_regression():
    a = run_file(run([record(i, steps=20 + (i * 7) % 11) for i in range(30)]))
    b = run_file(run([record(i, steps=20 + (i * 5 + 3) % 11) for i in range(30)]))
    assert not any("accept" in told for told in regressions(compare(a, b), 0.0))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"prompts_hash": "other"}, "prompts hash"),
        ({"max_tokens": 200}, "max tokens: 4096 and 200"),
        ({"temperature": 1.0}, "temperature"),
        ({"thinking": False}, "thinking"),
        ({"api": "generate"}, "api"),
        ({"ignore_eos": True}, "ignore eos"),
        ({"cache_flushed": True}, "cache"),
    ],
)
def test_unlike_settings_are_refused_unless_allowed(change, word):
    a, b = run_file(spread(20)), run_file(spread(20, **change))
    pair, found = changes(a, b)
    assert word in pair.refusals[0]
    assert found == {}
    allowed, found = changes(a, b, allow_unlike=True)
    assert allowed.refusals
    assert found


def test_another_target_commit_is_refused_and_another_engine_is_told():
    other = replace(
        ORIGIN, target=ModelIdentity(name="moonshotai/Kimi-K3", revision="3" * 40), engine_version="0.5.22"
    )
    pair, _ = changes(run_file(spread(20)), run_file(spread(20), origin=other))
    assert "target commit" in pair.refusals[0]
    flags = replace(ORIGIN, engine_version="0.5.22", flags=(("tp_size", "4"),))
    pair, found = changes(run_file(spread(20)), run_file(spread(20), origin=flags))
    assert pair.refusals == ()
    assert found
    assert any("0.5.22" in note for note in pair.notes)
    assert any("tp_size: 8 and 4" in note for note in pair.notes)


GPU = replace(ORIGIN.gpus[0], power_limit_w=1100.0, clock_sm_max_mhz=2032, others=())
READING = GpuReading(
    at_s=0.0, index=0, clock_sm_mhz=1900, utilization_percent=97, throttle_reasons=("sw_power_cap",)
)
IDLE = replace(READING, clock_sm_mhz=345, utilization_percent=0, throttle_reasons=("gpu_idle",))


def on(*gpus, readings=(READING,), warnings=()):
    """A result file of one run on those GPUs."""
    origin = replace(ORIGIN, gpus=gpus)
    return run_file(replace(spread(20), gpu_readings=readings, warnings=warnings), origin=origin)


def own_unknown(*processes):
    return replace(GPU, others=None, processes=processes)


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (on(GPU), on(GPU), []),
        (on(GPU), on(GPU, readings=(IDLE, READING)), []),
        (on(GPU), on(GPU, readings=(replace(READING, clock_sm_mhz=1880),)), []),
        (on(GPU), on(replace(GPU, power_limit_w=400.0)), ["power limit: 1100 W and 400 W"]),
        (on(GPU), on(replace(GPU, power_limit_w=None)), ["power limit: 1100 W and unknown"]),
        (
            on(GPU, replace(GPU, index=1)),
            on(GPU, replace(GPU, index=1, power_limit_w=400.0)),
            ["power limit: 1100 W and GPU 0 1100 W, GPU 1 400 W"],
        ),
        (on(GPU), on(replace(GPU, clock_sm_max_mhz=1200)), ["maximum SM clock: 2032 MHz and 1200 MHz"]),
        (
            on(GPU),
            on(replace(GPU, others=("7 python",))),
            ["processes beside the server's own: none and GPU 0: 7 python"],
        ),
        (
            on(replace(GPU, others=("7 python",))),
            on(replace(GPU, others=("7 python",))),
            ["processes beside the server's own: GPU 0: 7 python and GPU 0: 7 python"],
        ),
        (on(own_unknown("5 sglang")), on(own_unknown("6 sglang")), []),
        (
            on(own_unknown("5 sglang")),
            on(own_unknown("6 sglang", "7 python")),
            ["GPU processes, the server's own among them: GPU 0: sglang and GPU 0: python, sglang"],
        ),
        (
            on(GPU),
            on(GPU, readings=(replace(READING, throttle_reasons=("hw_thermal", "sw_power_cap")),)),
            ["clocks held back by: sw_power_cap and hw_thermal, sw_power_cap"],
        ),
        (
            on(GPU),
            on(GPU, readings=(replace(READING, clock_sm_mhz=900), IDLE)),
            ["median SM clock meanwhile: 1900 and 900 MHz"],
        ),
        (
            on(GPU, warnings=("it lagged",)),
            on(GPU, warnings=("it drifted",)),
            ["A: it lagged", "B: it drifted"],
        ),
    ],
)
def test_what_the_gpus_were_up_to_is_told_beside_the_figures(a, b, told):
    pair, found = changes(a, b)
    assert list(pair.notes) == told
    assert pair.refusals == ()
    assert found


def test_of_a_flag_that_is_an_object_only_what_differs_is_told():
    a, b = (
        run_file(spread(20), origin=replace(ORIGIN, flags=(("cuda_graph_config", text), ("odd", "{no json"))))
        for text in ('{"decode":{"bs":[1,2],"backend":"full"}}', '{"decode":{"bs":[1,2,4],"backend":"full"}}')
    )
    pair, _ = changes(a, b)
    assert pair.notes == ("cuda_graph_config.decode.bs: [1,2] and [1,2,4]",)


def test_runs_without_a_partner_are_named():
    comparison = compare(run_file(spread(20), spread(20, concurrency=8)), run_file(spread(20)))
    assert comparison.only_a == ("gsm8k, block 8, c8",)


def test_block_sizes_can_be_compared_where_each_file_has_one():
    (pair,) = compare(run_file(spread(20)), run_file(spread(15, block_size=16))).pairs
    assert pair.label == "gsm8k, block 8, c1 → gsm8k, block 16, c1"
    assert pair.changes[0].change is Change.BETTER


@pytest.mark.parametrize(
    ("in_a", "in_b", "wanted", "alone"),
    [
        # a near match never takes the partner of an exact one, in whatever order runs stand
        ((8, 16), (16,), [(16, 16)], ("gsm8k, block 8, c1",)),
        ((16, 8), (16,), [(16, 16)], ("gsm8k, block 8, c1",)),
        ((8, 16), (16, 8), [(8, 8), (16, 16)], ()),
        ((8, 16), (16, 4), [(8, 4), (16, 16)], ()),
        # one near partner for two runs is one too few to know which is meant
        ((8, 16), (4,), [], ("gsm8k, block 8, c1", "gsm8k, block 16, c1")),
        ((8,), (4, 16), [], ("gsm8k, block 8, c1",)),
        ((8, 8), (8, 8), [(8, 8), (8, 8)], ()),
    ],
)
def test_runs_are_paired_by_label_before_any_near_match(in_a, in_b, wanted, alone):
    a, b = (run_file(*(spread(20, block_size=size) for size in sizes)) for sizes in (in_a, in_b))
    found = [
        (match.one.setting.block_size, match.other.setting.block_size) for match in bench_pairing.paired(a, b)
    ]
    assert found == wanted
    assert compare(a, b).only_a == alone


def appended(*runs):
    """A file of runs with one label, oldest first: the output limit of each, or that and the target's commit."""
    asked = [each if isinstance(each, tuple) else (each, "2" * 40) for each in runs]
    origins = [replace(ORIGIN, target=replace(ORIGIN.target, revision=commit)) for _, commit in asked]
    made = [replace(spread(20, max_tokens=limit), session=at) for at, (limit, _) in enumerate(asked)]
    return read_run_file(
        to_json(BenchResult(runs=tuple(made), sessions=tuple(origins), path="h.json")), "h.json"
    )


@pytest.mark.parametrize(
    ("in_a", "in_b", "wanted"),
    [
        # the one that fits, wherever it stands
        ((48, 32), (32,), [(1, 0)]),
        ((32, 48), (32,), [(0, 0)]),
        ((32,), (48, 32), [(0, 1)]),
        ((32,), (32, 48), [(0, 0)]),
        # the newest of those that fit
        ((32, 32, 48), (32,), [(1, 0)]),
        ((32,), (32, 32), [(0, 1)]),
        # each with its own, and repeated ones in their order
        ((48, 32), (32, 48), [(0, 1), (1, 0)]),
        ((32, 32), (32, 32), [(0, 0), (1, 1)]),
        ((32, 32, 32), (32, 32), [(1, 0), (2, 1)]),
        # an old run without a partner is not refused beside one that has a partner
        ((48, 32), (32, 32), [(1, 1)]),
        # none fits: the newest of both, and refused
        ((48, 64), (32, 16), [(1, 1)]),
        # what the session says counts as much as the setting
        (((32, "1" * 40), 32), (32,), [(1, 0)]),
        ((32, (32, "1" * 40)), (32,), [(0, 0)]),
    ],
)
def test_of_several_runs_with_one_label_those_that_fit_are_taken_and_then_the_newest(in_a, in_b, wanted):
    a, b = appended(*in_a), appended(*in_b)
    comparison = compare(a, b)
    found = [(m.one.session, m.other.session) for m in bench_pairing.paired(a, b)]
    assert found == wanted
    assert (comparison.only_a, comparison.only_b) == ((), ())
    for pair, (i, k) in zip(comparison.pairs, wanted, strict=True):
        for side, runs, place in (("A", in_a, i), ("B", in_b, k)):
            told = [note for note in pair.notes if note.startswith(f"{side} has")]
            assert len(told) == (len(runs) > 1)
            assert all(f"{len(runs)} runs" in note and f"run {place + 1} of" in note for note in told)
    fits = in_a != (48, 64)
    assert [bool(pair.refusals) for pair in comparison.pairs] == [not fits] * len(wanted)
    assert bool(errors(judged(comparison, 1e9))) is not fits


@pytest.mark.parametrize(("in_a", "told"), [((32, 48), True), ((48, 32), False), ((32, 32), False)])
def test_a_newer_run_that_does_not_fit_is_told(in_a, told):
    (pair,) = compare(appended(*in_a), appended(32)).pairs
    assert any("a newer one does not fit" in note for note in pair.notes) is told


def test_a_near_match_takes_the_newest_that_fits_and_none_that_an_equal_label_left():
    a = run_file(spread(20, max_tokens=32), spread(20, max_tokens=48), spread(20))
    (pair,) = compare(a, run_file(spread(15, block_size=16, max_tokens=48))).pairs
    assert (pair.label, pair.refusals) == ("gsm8k, block 8, c1 → gsm8k, block 16, c1", ())
    left = compare(run_file(spread(20), spread(20)), run_file(spread(20), spread(15, block_size=16)))
    assert [p.label for p in left.pairs] == ["gsm8k, block 8, c1"]
    assert left.only_b == ("gsm8k, block 16, c1",)


def failing(count: int, bad: int, **changes):
    """`count` sound requests of which the last `bad` failed with HTTP 429."""
    records = [record(i, steps=20 + i % 5) for i in range(count)]
    broken = [replace(r, error=RequestError.STATUS, status=429) for r in records[count - bad :]]
    return run([*records[: count - bad], *broken], **changes)


WITHHELD = withheld(run([record(i, steps=20 + i % 5) for i in range(40)]))
SOUND = failing(40, 0)


@pytest.mark.parametrize(
    ("a", "b", "fails", "words"),
    [
        ((SOUND,), (SOUND,), False, None),
        ((SOUND,), (failing(40, 40),), True, "40 of 40 requests failed (HTTP 429 40)"),
        ((SOUND,), (failing(40, 25),), True, "25 of 40 requests failed"),
        ((SOUND,), (failing(40, 1),), False, "1 of 40 requests failed"),
        ((failing(40, 25),), (SOUND,), False, "A: 25 of 40 requests failed"),
        ((SOUND, spread(20, concurrency=8)), (SOUND,), True, "has no such run"),
        ((SOUND,), (SOUND, spread(20, concurrency=8)), False, None),
        (
            (SOUND,),
            (WITHHELD,),
            True,
            "tpot_ms.p50, e2e_ms.p50, output_tokens_per_s: latencies and rates withheld: the loop lagged",
        ),
        ((WITHHELD,), (SOUND,), False, "A: no "),
        ((WITHHELD,), (WITHHELD,), False, "B: latencies and rates withheld: the loop lagged"),
        ((SOUND,), (run([record(i, steps=None) for i in range(40)]),), True, "no accept_length.mean"),
        ((failing(1, 0),), (failing(1, 0),), True, "no figure has an interval"),
        ((spread(20, max_tokens=9),), (SOUND,), True, "not comparable"),
        ((spread(20, dataset="mbpp"),), (SOUND,), True, "has a partner"),
    ],
)
def test_what_cannot_be_judged_fails_a_gate_and_is_said_without_one(a, b, fails, words):
    comparison = compare(run_file(*a), run_file(*b))
    gated, free = judged(comparison, 1e9), judged(comparison, None)
    assert bool(errors(gated)) is fails, gated
    assert [f.summary for f in gated] == [f.summary for f in free]
    assert words is None or any(words in f.summary for f in free), free
    assert all(
        f.severity is Severity.WARNING for f in free if f.id in {"bench.unjudged", "bench.missing_run"}
    )


def test_a_benchmark_that_measures_fewer_runs_than_the_earlier_one_is_not_failed_for_it():
    comparison = compare(run_file(SOUND, spread(20, concurrency=8)), run_file(SOUND))
    (told,) = judged(comparison, 1e9, whole=False)
    assert told.severity is Severity.WARNING


def longer_later(count: int = 30, *, first: int = 0, bad: tuple[int, ...] = (), unfinished=None, **changes):
    """The requests from `first` on: later ones need ever fewer verify steps; those of `bad` failed."""
    records = [record(i, steps=60 - i) for i in range(first, count)]
    broken = [
        replace(r, error=RequestError.STATUS, status=429) if r.id in {f"gsm8k/{i}" for i in bad} else r
        for r in records
    ]
    return replace(run(broken, **changes), unfinished=unfinished)


CUT = Unfinished.MAX_DURATION
FIRST_8 = fmean(120 / (60 - i) for i in range(8))


@pytest.mark.parametrize(
    ("a", "b", "mean", "note"),
    [
        (longer_later(), longer_later(), fmean(120 / (60 - i) for i in range(30)), None),
        (
            longer_later(),
            longer_later(8, unfinished=CUT),
            FIRST_8,
            "8 turns that both runs have, of 30 in A and 8 in B",
        ),
        (
            longer_later(8, unfinished=CUT),
            longer_later(),
            FIRST_8,
            "8 turns that both runs have, of 8 in A and 30 in B",
        ),
        (
            longer_later(12, first=3, unfinished=CUT),
            longer_later(20, unfinished=CUT),
            fmean(120 / (60 - i) for i in range(3, 12)),
            "9 turns that both runs have, of 9 in A and 20 in B",
        ),
        # a conversation whose answer failed has no further turn: nothing is unfinished, and ids differ all the same
        (longer_later(), longer_later(29), fmean(120 / (60 - i) for i in range(29)), "29 turns"),
        # a request that failed on one side is left out on both
        (
            longer_later(),
            longer_later(8, bad=(7,), unfinished=CUT),
            fmean(120 / (60 - i) for i in range(7)),
            "8 turns that both runs have",
        ),
    ],
)
def test_runs_of_the_same_prompts_are_compared_over_the_turns_that_both_have(a, b, mean, note):
    pair, found = changes(run_file(a), run_file(b))
    assert pair.paired
    assert found["accept_length.mean"].a == pytest.approx(mean)
    assert {change.relative for name, change in found.items() if name != "output_tokens_per_s"} == {0}
    assert regressions(compare(run_file(a), run_file(b)), 0.0) == ()
    told = [n for n in pair.notes if "turns that both runs have" in n]
    assert (note in told[0]) if note else not told


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        (longer_later(), longer_later(), True),
        (longer_later(), longer_later(8, unfinished=CUT), False),
        (longer_later(8, unfinished=CUT), longer_later(), False),
        (longer_later(8, unfinished=CUT), longer_later(8, unfinished=CUT), True),
        (longer_later(8, unfinished=CUT), longer_later(9, unfinished=CUT), False),
        (longer_later(), longer_later(29), True),
    ],
)
def test_the_rate_of_an_unfinished_run_stands_beside_none_of_other_turns(a, b, shown):
    pair, found = changes(run_file(a), run_file(b))
    assert ("output_tokens_per_s" in found) is shown
    assert any("output_tokens_per_s is left out" in note for note in pair.notes) is not shown


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (spread(20), spread(20, prompts_hash="other")),
        (run([record(0), record(0), record(1)]), run([record(0), record(1)])),
        (longer_later(8), longer_later(20, first=12)),
    ],
)
def test_turns_that_may_be_others_are_not_paired(a, b):
    pair, found = changes(run_file(a), run_file(b), allow_unlike=True)
    assert not pair.paired
    assert found


def anew(name: str, steps: int, **changes):
    return run([record(i, steps=steps + (i % 5) - 2) for i in range(40)], dataset=name, **changes)


@pytest.mark.parametrize("name", sorted(MADE_ANEW))
def test_texts_made_anew_are_never_paired_by_their_ids(name):
    """Each side has the same values in another order, as other texts under the same ids give them."""
    turned = run([record(i, steps=20 + ((i + 3) % 5) - 2) for i in range(40)], dataset=name)
    pair, found = changes(run_file(anew(name, 20)), run_file(turned))
    assert not pair.paired
    assert pair.refusals == ()
    assert found["tpot_ms.p50"].interval.low < 0 < found["tpot_ms.p50"].interval.high


@pytest.mark.parametrize(
    ("name", "fails"),
    [("gsm8k", True), ("humaneval-long", True), ("random", False), ("shared-prefix", False)],
)
def test_the_accept_length_of_texts_for_capacity_is_shown_and_not_judged(name, fails):
    a, b = run_file(anew(name, 20)), run_file(anew(name, 40))
    pair, found = changes(a, b)
    loss = found["accept_length.mean"]
    assert loss.relative == pytest.approx(-0.5, abs=0.02)
    assert (loss.interval is not None) is fails
    assert any("accept_length.mean" in told for told in regressions(compare(a, b), 0.05)) is fails
    assert any("accept_length.mean is not judged" in note for note in pair.notes) is not fails
    none = run([record(i, steps=None) for i in range(40)], dataset=name)
    lacking = judged(compare(a, run_file(none)), 1e9)
    assert any("no accept_length.mean" in f.summary for f in errors(lacking)) is fails
    accept_only = compare(run_file(withheld(anew(name, 20))), run_file(withheld(anew(name, 20))))
    assert any("no figure has an interval" in f.summary for f in judged(accept_only, 1e9)) is not fails
