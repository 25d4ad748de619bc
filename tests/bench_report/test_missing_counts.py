"""Accept lengths that are missing, partial or impossible: they are told, and no gate passes them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dflashctl.commands.bench import bench
from dflashctl.commands.bench_servers import Variant
from dflashctl.core.bench_options import BenchOptions, Gates
from dflashctl.core.errors import ExitCode
from dflashctl.core.findings import Severity, errors
from dflashctl.env import Env
from dflashctl.reference import tiny_paths
from dflashctl.ui.views.bench import render
from tests.fakes.mock_sse import MockServer, Wish

DRAFTED = {"speculative_algorithm": "DFLASH", "speculative_num_draft_tokens": 8}
PLAIN = {"speculative_algorithm": None}
SOUND = {"ttft_ms": 2, "gap_ms": 1, "tokens": [1, 8, 8, 8]}
BARE = {**SOUND, "sglext": False}
IMPOSSIBLE = {**SOUND, "tokens": [1, 20, 20, 20]}


class ReleasesMixed(MockServer):
    """Answers the first `sound` requests as wished, later ones without counts."""

    sound = 0

    def _begin(self, connection, now, wish, body, api):
        served = len(self.requests) > self.sound
        super()._begin(connection, now, replace(wish, sglext=False) if served else wish, body, api)


@pytest.fixture
def env(tmp_path):
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


def measured(env, server, info, **options):
    server.environment = info
    with server:
        asked = {
            "count": 8,
            "concurrency": (4,),
            "output": "run.json",
            "warm_up": 0,
            "allow_slow_client": True,
        }
        return bench(env, BenchOptions(url=server.url, **{**asked, **options}))


FLOOR = Gates(min_accept_length=5.0)


@pytest.mark.parametrize(
    ("wish", "info", "options", "told"),
    [
        (SOUND, DRAFTED, {}, None),
        (SOUND, {}, {}, None),  # a router that does not say: counts are asked for
        (BARE, PLAIN, {}, "the server does not speculate, the floor is 5"),
        (BARE, PLAIN, {"speculation": False}, None),
        (BARE, DRAFTED, {}, "no accept length was measured"),
        (BARE, {}, {}, "no accept length was measured"),
        (
            IMPOSSIBLE,
            DRAFTED,
            {},
            "accept length 20.333 cannot be held to the floor 5: 8 answers have more tokens",
        ),
        (
            IMPOSSIBLE,
            {"speculative_algorithm": "DFLASH"},
            {},
            None,
        ),  # at an unknown block size nothing is impossible
        (
            {**SOUND, "tokens": [1, 2], "verify_steps": 1},
            DRAFTED,
            {"gates": Gates(min_accept_length=1.0)},
            None,
        ),
        ({**SOUND, "tokens": [9, 24], "verify_steps": 4}, DRAFTED, {}, None),  # 8.25: one token is prefill's
    ],
)
def test_a_floor_passes_only_what_was_measured(env, wish, info, options, told):
    report = measured(env, MockServer(Wish(**wish)), info, **{"gates": FLOOR, **options})
    found = [finding for finding in report.findings if finding.severity is Severity.ERROR]
    assert report.exit_code is (ExitCode.OK if told is None else ExitCode.CHECK_FAILED), found
    assert [finding.id for finding in found] == ([] if told is None else ["bench.min_accept_length"])
    assert all(told in finding.summary for finding in found), found


def test_an_impossible_accept_length_is_told(env):
    report = measured(env, MockServer(Wish(**IMPOSSIBLE)), DRAFTED)
    (run,) = report.data.runs
    assert run.summary.doubts["accept_above_block"] == 8
    assert any("8 answers have more tokens than their verify steps" in f.summary for f in report.findings)


@pytest.mark.parametrize(
    ("variant", "plain"),
    [
        (Variant(), False),
        (Variant(speculation=True), False),
        (Variant(speculation=False), True),
        (Variant(overrides=(("speculative.algorithm", "NONE"),)), True),
        (Variant(overrides=(("speculative.algorithm", "DFLASH"), ("memory.x", "NONE"))), False),
    ],
)
def test_only_a_server_that_was_asked_to_be_plain_is_spared(variant, plain):
    assert variant.plain is plain


TARGET = str(tiny_paths()[0])


@pytest.mark.parametrize(
    ("wish", "info", "options", "told"),
    [
        (SOUND, DRAFTED, {}, None),
        (BARE, DRAFTED, {}, "none of 8 answers has the engine's exact counts; SGLang sends them on a chat"),
        (BARE, DRAFTED, {"api": "generate", "tokenizer": TARGET}, "this /generate does not send them"),
        (BARE, PLAIN, {}, None),
        (BARE, {}, {}, None),  # it may well be a server that does not speculate
        ({**BARE, "tokens": [1]}, DRAFTED, {}, None),  # prefill's token alone has no verify step
    ],
)
def test_missing_counts_are_told_with_what_brings_them(env, wish, info, options, told):
    report = measured(env, MockServer(Wish(**wish)), info, **options)
    found = [finding.summary for finding in report.findings if "exact counts" in finding.summary]
    assert len(found) == (told is not None)
    assert all(told in summary for summary in found), found


@pytest.mark.parametrize(("sound", "fails"), [(9, True), (20, False)])
def test_a_floor_does_not_speak_for_answers_without_counts(env, sound, fails):
    server = ReleasesMixed(Wish(**SOUND))
    server.sound = sound + 1  # the first request asks where the counts are
    report = measured(env, server, DRAFTED, count=20, gates=FLOOR)
    assert report.exit_code is (ExitCode.CHECK_FAILED if fails else ExitCode.OK)
    found = [finding.summary.rpartition(": ")[2] for finding in errors(report.findings)]
    assert found == [f"{20 - sound} of 20 answers have no exact counts"] * fails
    warned = [
        w for run in report.data.runs for w in run.warnings if "accept length is that of the others" in w
    ]
    assert len(warned) == fails


def shown(report) -> str:
    return "\n".join(getattr(line, "plain", "") for line in render(report))


@pytest.mark.parametrize(
    ("info", "options", "told", "line"),
    [
        (PLAIN, {}, ["the server does not speculate, published accept length 7.33 or 13.529"], "does not speculate"),
        (PLAIN, {"speculation": False}, [], ""),
        (PLAIN, {"gates": Gates(expect=False)}, [], "does not speculate"),
        (DRAFTED, {}, [], "not measured: 8 of 8 answers have no exact counts"),
    ],
)  # fmt: skip
def test_a_published_figure_is_missed_by_a_server_that_does_not_speculate(env, info, options, told, line):
    options = {"profile": "tiny-cpu", "workloads": ("tiny-math",), "concurrency": (1,), **options}
    report = measured(env, MockServer(Wish(**BARE)), info, **options)
    found = errors(report.findings)
    assert [finding.summary.partition(": ")[2] for finding in found] == told
    assert all("--no-speculation" in finding.fix for finding in found)
    assert line in shown(report)
    assert shown(report).count("not as published") <= 1
    kept = json.loads((env.cwd / "run.json").read_text())["runs"][0]["expectations"]
    assert {item["verdict"] for item in kept} == ({"unmeasured"} if line else set())
