"""Published figures beside measured ones: which speak of a run, and what the verdict is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.core.bench_gates import client_findings, error_findings, gate_findings
from dflashctl.core.bench_options import Gates
from dflashctl.core.bench_record import RequestError
from dflashctl.core.bench_result import ClientFigures
from dflashctl.core.expectations import FigureVerdict, expectations
from dflashctl.core.findings import Severity
from dflashctl.core.profile import Expect, Figure, Sampling
from dflashctl.core.stats import Interval
from tests.bench_report.made_runs import record, run, spread

AS_PUBLISHED = Sampling(temperature=0.0, top_p=1.0, max_tokens=4096, thinking=True)


def expect(value: float, **changes) -> Expect:
    figure = Figure(metric="accept_length", dataset="gsm8k", value=value, block_size=8, concurrency=1)
    return Expect(sampling=changes.pop("sampling", AS_PUBLISHED), figures=(figure,))


@pytest.mark.parametrize(
    ("published", "verdict"),
    [
        (6.0, FigureVerdict.REPRODUCED),
        (6.1, FigureVerdict.REPRODUCED),
        (7.0, FigureVerdict.BELOW),
        (5.0, FigureVerdict.ABOVE),
    ],
)
def test_verdict(published, verdict):
    measured = spread(20)
    (found,) = expectations(expect(published), measured.summary, measured.setting)
    assert found.verdict is verdict, found
    assert found.interval is not None
    assert found.interval.low <= found.measured <= found.interval.high


@pytest.mark.parametrize(
    ("sampling", "word"),
    [
        (Sampling(temperature=1.0, max_tokens=4096, thinking=True), "temperature"),
        (Sampling(max_tokens=200, thinking=True), "max_tokens 4096, published 200"),
        (Sampling(max_tokens=4096, thinking=False), "thinking"),
    ],
)
def test_another_setting_is_not_judged(sampling, word):
    measured = spread(20)
    (found,) = expectations(expect(9.0, sampling=sampling), measured.summary, measured.setting)
    assert found.verdict is FigureVerdict.UNLIKE
    assert word in found.why


@pytest.mark.parametrize(
    "changes",
    [{"dataset": "mbpp"}, {"block_size": 16}, {"concurrency": 8}, {"speculation": False, "plain": True}],
)
def test_a_figure_speaks_only_of_its_own_setting(changes):
    measured = spread(20, **changes)
    assert expectations(expect(6.0), measured.summary, measured.setting) == ()


def test_other_figures_find_their_measurement():
    measured = spread(20)
    rate, peak = measured.summary.output_tokens_per_s, measured.summary.per_request_tokens_per_s.p99
    figures = tuple(
        Figure(metric=m, dataset="gsm8k", value=100.0)
        for m in ("output_tokens_per_s", "request_tokens_per_s", "x")
    )
    found = expectations(Expect(sampling=AS_PUBLISHED, figures=figures), measured.summary, measured.setting)
    assert [f.measured for f in found] == [rate, peak, None]
    assert found[2].verdict is FigureVerdict.UNMEASURED


def judged(value: float):
    measured = spread(20)
    return replace(measured, expectations=expectations(expect(value), measured.summary, measured.setting))


def test_below_the_published_figure_is_an_error_unless_turned_off():
    (finding,) = gate_findings((judged(7.0),), Gates())
    assert finding.severity is Severity.ERROR
    assert "published 7" in finding.summary
    assert gate_findings((judged(7.0),), Gates(expect=False)) == ()
    assert gate_findings((judged(6.0),), Gates()) == ()


def test_floor():
    runs = (spread(20), spread(20, speculation=False, plain=True))
    assert gate_findings(runs, Gates(min_accept_length=5.0)) == ()
    (finding,) = gate_findings(runs, Gates(min_accept_length=6.5))
    assert "the floor is 6.5" in finding.summary


def test_a_floor_without_counts_fails_rather_than_passes():
    (finding,) = gate_findings((run([record(0, steps=None)]),), Gates(min_accept_length=2.0))
    assert "no accept length was measured" in finding.summary


def broken(count: int, *, error=None, status=200, detail=None, finish="stop"):
    return [
        replace(record(100 + i), error=error, status=status, error_detail=detail, finish_reason=finish)
        for i in range(count)
    ]


REFUSED = {"error": RequestError.STATUS, "status": 429, "detail": "HTTP 429: too many requests"}


@pytest.mark.parametrize(
    ("sound", "bad", "severity", "words"),
    [
        (20, {"count": 0}, None, ""),
        (99, {"count": 1, **REFUSED}, Severity.WARNING, "1 of 100 requests failed: HTTP 429 1"),
        (95, {"count": 5, **REFUSED}, Severity.WARNING, "5 of 100 requests failed"),
        (94, {"count": 6, **REFUSED}, Severity.ERROR, "6 of 100 requests failed: HTTP 429 6"),
        (9, {"count": 11, **REFUSED}, Severity.ERROR, "11 of 20 requests failed: HTTP 429 11"),
        (0, {"count": 3, **REFUSED}, Severity.ERROR, "3 of 3 requests failed"),
        (
            22,
            {"count": 38, "error": RequestError.CLOSED},
            Severity.ERROR,
            "38 of 60 requests failed: closed 38",
        ),
        (
            0,
            {"count": 4, "finish": "abort"},
            Severity.ERROR,
            "broke off 4 of 4 answers: finish reason abort 4",
        ),
        (59, {"count": 1, "finish": "abort"}, Severity.WARNING, "broke off 1 of 60 answers"),
        (0, {"count": 4, "finish": "length"}, None, ""),
        (0, {"count": 4, "finish": None}, None, ""),
    ],
)
def test_failed_and_broken_off_requests(sound, bad, severity, words):
    measured = run([*(record(i) for i in range(sound)), *broken(**bad)])
    found = error_findings((measured,))
    assert [f.severity for f in found] == ([] if severity is None else [severity])
    assert all(words in f.summary for f in found), found
    assert all("too many requests" in f.detail for f in found if bad.get("detail"))


@pytest.mark.parametrize(
    ("bad", "verdict", "told"),
    [
        ({"count": 2, **REFUSED}, FigureVerdict.REPRODUCED, None),
        ({"count": 44, "error": RequestError.CLOSED}, FigureVerdict.UNJUDGED, "44 of 84 requests failed"),
        ({"count": 44, "finish": "abort"}, FigureVerdict.UNJUDGED, "44 of 84 answers were broken off"),
    ],
)
@pytest.mark.parametrize("metric", ["accept_length", "output_tokens_per_s"])
def test_nothing_is_judged_by_the_rest_of_a_run_that_broke(metric, bad, verdict, told):
    measured = run([*(record(i) for i in range(40)), *broken(**bad)])
    summary = measured.summary
    value = summary.accept_length.mean if metric == "accept_length" else summary.output_tokens_per_s
    published = Expect(sampling=AS_PUBLISHED, figures=(Figure(metric=metric, dataset="gsm8k", value=value),))
    (found,) = expectations(published, summary, measured.setting, samples=measured.samples)
    assert found.verdict is verdict
    assert found.note == (told and f"not judged: {told}")


@pytest.mark.parametrize(
    ("tokens", "steps", "impossible"),
    [(120, 20, False), (161, 20, False), (162, 20, True), (33, 4, False), (34, 4, True), (1, None, False)],
)
def test_more_tokens_than_the_block_size_allows_are_never_judged(tokens, steps, impossible):
    records = [record(i, tokens=tokens, steps=steps) for i in range(10)]
    for block, doubted in ((8, impossible), (None, False)):
        measured = run(records, block_size=block)
        assert ("accept_above_block" in measured.summary.doubts) is doubted
        figure = Figure(metric="accept_length", dataset="gsm8k", value=tokens / (steps or 1))
        (found,) = expectations(
            Expect(sampling=AS_PUBLISHED, figures=(figure,)), measured.summary, measured.setting
        )
        kept = FigureVerdict.REPRODUCED if steps else FigureVerdict.UNMEASURED
        assert found.verdict is (FigureVerdict.UNJUDGED if doubted else kept)


@pytest.mark.parametrize(
    ("cpu_share", "words"),
    [
        (0.95, "--processes 4"),
        (0.02, "something else held its core (it used 2%): run it again"),
        (None, "--processes 2"),
    ],
)
def test_a_slow_client_is_told_with_what_would_help(cpu_share, words):
    client = (
        None if cpu_share is None else ClientFigures(cpu_share=cpu_share, loop_lag_ms_p99=3.0, processes=2)
    )
    measured = replace(spread(20), withheld=("loop lag",))
    (slow,) = client_findings((replace(measured, summary=replace(measured.summary, client=client)),))
    assert slow.severity is Severity.ERROR
    assert slow.fix.startswith(words)
    assert "--allow-slow-client" in slow.fix


FEW = [60, 15, 24]  # verify steps of 120 tokens: accept lengths 2, 8 and 5


@pytest.mark.parametrize(
    ("steps", "published", "tolerance", "verdict", "told"),
    [
        ([20], 9.0, 0.02, FigureVerdict.UNJUDGED, "1 of the 5 turns that a verdict needs: raise --count"),
        ([20], 6.0, 0.02, FigureVerdict.UNJUDGED, "1 of the 5 turns"),
        ([20], 3.0, 0.02, FigureVerdict.UNJUDGED, "1 of the 5 turns"),
        ([20, 20], 6.0, 0.02, FigureVerdict.UNJUDGED, "2 of the 5 turns"),
        (FEW, 5.905, 0.02, FigureVerdict.UNJUDGED, "3 of the 5 turns"),
        ([20, 21, 20, 19], 9.0, 0.02, FigureVerdict.UNJUDGED, "4 of the 5 turns"),
        (FEW * 4, 5.0, 0.02, FigureVerdict.UNJUDGED, "too wide for a verdict (± 10%): raise --count"),
        (FEW * 4, 5.0, 0.5, FigureVerdict.REPRODUCED, None),
        (FEW * 4, 12.0, 0.02, FigureVerdict.BELOW, None),
        (FEW * 4, 2.0, 0.02, FigureVerdict.ABOVE, None),
        ([20, 21, 20, 19, 20], 6.0, 0.02, FigureVerdict.REPRODUCED, None),
        ([20, 21, 20, 19, 20], 9.0, 0.02, FigureVerdict.BELOW, None),
        ([21, 27, 30, 24, 36, 24] * 10, 4.53, 0.02, FigureVerdict.REPRODUCED, None),
    ],
)  # fmt: skip
def test_too_few_requests_to_tell_are_not_judged(steps, published, tolerance, verdict, told):
    measured = run([record(i, steps=count) for i, count in enumerate(steps)])
    (found,) = expectations(expect(published), measured.summary, measured.setting, tolerance)
    assert found.verdict is verdict, found
    assert found.deviation is not None
    assert (found.note is None) is (told is None)
    assert told is None or told in found.note
    failures = gate_findings((replace(measured, expectations=(found,)),), Gates())
    assert bool(failures) is (verdict is FigureVerdict.BELOW)


@pytest.mark.parametrize(
    ("low", "high", "reach"),
    [(13.04, 14.01, "reproduced"), (7.20, 7.46, "reproduced"), (2.0, 8.0, "unjudged")],
)
def test_the_tiny_pair_s_sixty_problems_are_enough_to_judge_by(low, high, reach):
    measured = spread(20)
    accept = replace(
        measured.summary.accept_length, mean=(low + high) / 2, mean_interval=Interval(low=low, high=high)
    )
    summary = replace(measured.summary, accept_length=accept)
    (found,) = expectations(expect((low + high) / 2), summary, measured.setting)
    assert found.verdict.value == reach


def talks(count: int, first: int, second: int):
    """`count` conversations of two turns, 120 tokens each, with so many verify steps."""
    return run(
        [
            replace(record(i, steps=steps + i % 3 - 1), id=f"gsm8k/{i}#{turn}")
            for turn, steps in ((1, first), (2, second))
            for i in range(count)
        ],
        prompts=count,
        turns=2 * count,
    )


@pytest.mark.parametrize(
    ("turns", "value", "verdict", "told"),
    [
        (1, 6.0, FigureVerdict.REPRODUCED, "over turns 1 to 1 alone"),
        (1, 4.5, FigureVerdict.ABOVE, "over turns 1 to 1 alone"),
        (None, 4.5, FigureVerdict.REPRODUCED, None),
        (2, 4.5, FigureVerdict.REPRODUCED, None),
    ],
)
def test_a_figure_of_first_turns_is_judged_by_those_turns(turns, value, verdict, told):
    measured = talks(100, first=20, second=40)
    figure = Figure(metric="accept_length", dataset="gsm8k", value=value, turns=turns)
    published = Expect(sampling=AS_PUBLISHED, figures=(figure,))
    (found,) = expectations(published, measured.summary, measured.setting, samples=measured.samples)
    assert found.verdict is verdict, found
    assert (told or "") in (found.note or "")
    (blind,) = expectations(published, measured.summary, measured.setting)
    assert blind.verdict is (FigureVerdict.UNLIKE if turns == 1 else verdict)


def test_a_rate_of_first_turns_is_unlike_one_of_all():
    measured = talks(20, first=20, second=40)
    figure = Figure(metric="output_tokens_per_s", dataset="gsm8k", value=5.0, turns=1)
    (found,) = expectations(
        Expect(sampling=AS_PUBLISHED, figures=(figure,)),
        measured.summary,
        measured.setting,
        samples=measured.samples,
    )
    assert found.verdict is FigureVerdict.UNLIKE
    assert "all turns measured" in found.why


def test_other_prompts_than_the_published_ones_are_not_judged():
    measured = spread(20, prompts_unlike=("own prompts from mine.jsonl",))
    (found,) = expectations(expect(9.0), measured.summary, measured.setting)
    assert found.verdict is FigureVerdict.UNLIKE
    assert found.why == "own prompts from mine.jsonl"
