"""Accept length: its five definitions, the choice of the source, the cross-check, made-up values."""

from __future__ import annotations

import pytest

from dflashctl.core.accept import (
    CountSource,
    accept_length,
    count_source,
    counter_total,
    cross_check,
    release_of,
)
from dflashctl.core.bench_record import RequestError, RequestRecord, SpecCounts
from dflashctl.core.simulated import simulated, simulated_by


def turn(tokens, steps, accepted=None, histogram=(), **more):
    spec = (
        None
        if steps is None
        else SpecCounts(verify_steps=steps, accepted_drafts=accepted, histogram=histogram)
    )
    return RequestRecord(id="r", intended_s=0.0, completion_tokens=tokens, spec=spec, **more)


def test_the_five_definitions_differ():
    found = accept_length([turn(52, 8, 43), turn(10, 4, 5)])
    assert found.mean == pytest.approx((6.5 + 2.5) / 2)
    assert found.pooled == pytest.approx(62 / 12)
    assert found.completion_weighted == pytest.approx((52 * 6.5 + 10 * 2.5) / 62)
    assert found.one_plus_accepted == pytest.approx(1 + 48 / 12)
    assert found.turns == 2
    assert found.mean_interval.low <= found.mean <= found.mean_interval.high


def test_thousands_of_turns_have_the_intervals_that_a_part_of_them_has_only_narrower():
    some = [turn(4 + n % 60, 1 + n % 13) for n in range(2400)]
    few, many = accept_length(some), accept_length(some * 4)
    for name in ("mean_interval", "pooled_interval"):
        wide, narrow = getattr(few, name), getattr(many, name)
        assert (narrow.high - narrow.low) * 2 == pytest.approx(wide.high - wide.low, rel=0.15)


def test_the_engines_own_figure_of_a_real_answer():
    """SGLang 0.5.17: 52 tokens in 8 steps, spec_accept_length 6.5, histogram with 8 entries."""
    found = accept_length([turn(52, 8, 50, (0, 1, 0, 0, 0, 0, 0, 7))])
    assert found.mean == 6.5
    assert found.histogram == (0, 1 / 8, 0, 0, 0, 0, 0, 7 / 8)
    assert found.mean_interval is None


def test_histograms_of_unlike_length_add_up():
    assert accept_length([turn(4, 2, 2, (1, 1)), turn(6, 2, 4, (0, 1, 1))]).histogram == (0.25, 0.5, 0.25)
    assert accept_length([turn(4, 2)]).histogram == ()


def test_turns_that_do_not_count():
    failed = turn(50, 1, error=RequestError.CLOSED)
    assert accept_length([failed, turn(5, None), turn(5, 0), turn(None, 3)]) is None
    assert accept_length([failed, turn(6, 2)]).mean == 3


SOURCES = [
    ("0.5.23", True, CountSource.STREAM),
    ("0.5.19.post1", True, CountSource.STREAM),
    ("0.5.18", True, CountSource.GENERATE),
    ("0.5.18", False, CountSource.WHOLE),
    ("0.5.13rc0", False, CountSource.WHOLE),
    ("0.5.12", False, CountSource.GENERATE),
    ("0.6.0", True, CountSource.STREAM),
    (None, True, CountSource.GENERATE),
    ("main", True, CountSource.GENERATE),
]


@pytest.mark.parametrize(("version", "streamed", "source"), SOURCES)
def test_the_source_goes_by_the_release(version, streamed, source):
    assert count_source(version, streamed=streamed) is source


def test_release_numbers():
    assert release_of("v0.5.9") == (0, 5, 9)
    assert release_of("0.5") is None


METRICS = """# HELP sglang:generation_tokens_total Number of generation tokens processed.
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{is_streaming="false",model_name="/m"} 216.0
sglang:generation_tokens_total{is_streaming="true",model_name="/m"} 52.0
sglang:generation_tokens_total_more{x="y"} 9
sglang:spec_verify_calls_total{model_name="/m"} 47.0
"""


def test_counters_are_summed_over_their_labels():
    assert counter_total(METRICS, "sglang:generation_tokens_total") == 268
    assert counter_total(METRICS, "sglang:absent") is None


def test_the_cross_check_compares_pooled_figures():
    after = METRICS.replace("216.0", "316.0").replace("47.0", "67.0")
    check = cross_check(METRICS, after, [turn(60, 10), turn(40, 10)])
    assert (check.counted, check.requested, check.agrees) == (5.0, 5.0, True)
    assert not cross_check(METRICS, after, [turn(40, 10)]).agrees
    assert cross_check(METRICS, METRICS, [turn(40, 10)]) is None
    assert cross_check("", "", [turn(40, 10)]) is None


@pytest.mark.parametrize(
    ("info", "value"),
    [
        ({"a": 1}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": "-1"}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": ""}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": 3.5}, "3.5"),
        ({"internal_states": [{"x": {"simulate_acc_len": 4}}]}, "4"),
    ],
)
def test_made_up_accept_lengths_are_seen(info, value):
    assert simulated(info) == value


@pytest.mark.parametrize(
    ("environment", "value"),
    [
        ({}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": "3"}, "3"),
        ({"SGLANG_SIMULATE_ACC_LEN": "0.5"}, "0.5"),
        ({"SGLANG_SIMULATE_ACC_LEN": "0"}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": "-1"}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": ""}, None),
        ({"SGLANG_SIMULATE_ACC_LEN": "three"}, None),
    ],
)
def test_a_server_s_environment_shows_whether_it_makes_them_up(environment, value):
    assert simulated_by(environment) == value
