"""The reference engine's command: raw arguments are read and checked, and nothing that was asked for is lost unsaid."""

from __future__ import annotations

from dataclasses import fields

import pytest

from dflashctl.core.profile import Backends, Memory, Server
from dflashctl.engines.reference_words import OPTIONS
from dflashctl.reference.arguments import _parser
from tests.support.cli import run


def test_the_options_are_those_of_the_engine_s_parser():
    actions = {name: action for action in _parser()._actions for name in action.option_strings}
    assert set(actions) - {"-h", "--help"} == set(OPTIONS)
    assert {name for name, judge in OPTIONS.items() if judge is None} == {
        name for name, action in actions.items() if action.nargs == 0 and name not in ("-h", "--help")
    }


def dry(*words):
    return run(
        "up", "tiny-cpu", "--dry-run", *words[: words.index("--")], "--json", *words[words.index("--") :]
    )


@pytest.mark.parametrize(
    ("words", "id_"),
    [
        (("--prot", "41005"), "option_unknown"),
        (("--mem-fraction-static", "0.8"), "option_unknown"),
        (("41005",), "word_without_option"),
        (("--port",), "option_needs_value"),
        (("--context-length", "many"), "value_not_allowed"),
        (("--context-length", "-5"), "value_not_allowed"),
        (("--log-level", "loud"), "value_not_allowed"),
        (("--speculative-algorithm", "EAGLE"), "value_not_allowed"),
        (("--enable-metrics=yes",), "option_takes_no_value"),
        (("--model-path", "/x"), "model_in_raw_arguments"),
        (("--speculative-dflash-block-size", "99"), "block_size_above_trained"),
        (("--speculative-num-draft-tokens", "99"), "block_size_above_trained"),
    ],
)
def test_what_the_engine_would_refuse_is_refused_by_the_plan(words, id_):
    answer = dry("--", *words)
    assert answer.exit == 78
    assert any(word.split("=")[0] in answer.json["errors"][0]["message"] for word in words) or "99" in words


@pytest.mark.parametrize(
    ("words", "gone", "there"),
    [
        (("--port", "41005"), "30000", "41005"),
        (("--port=41005",), "30000", "41005"),
        (("--port", "41004", "--port", "41005"), "41004", "41005"),
        (("--speculative-num-draft-tokens", "8"), "--speculative-dflash-block-size", "8"),
        (("--context-length", "512"), None, "512"),
        (("--random-seed", "-3"), None, "-3"),
    ],
)
def test_raw_arguments_win_and_are_told(words, gone, there):
    data = dry("--", *words).json["data"]
    assert there in data["argv"]
    assert gone not in data["argv"]
    flag = words[0].split("=")[0]
    shown = {
        a["flag"]: a
        for a in run("profile", "explain", "tiny-cpu", "--json", "--", *words).json["data"]["rows"]
    }
    assert shown[flag]["origin"] == "after --"
    assert run("profile", "explain", "tiny-cpu", "--", *words).out.count(flag) == 1


UNUSED = [
    f"{section}.{field.name}"
    for section, kind in (("backends", Backends), ("memory", Memory), ("server", Server))
    for field in fields(kind)
    if f"{section}.{field.name}"
    not in {
        "memory.context_length",
        "memory.max_running_requests",
        "server.host",
        "server.port",
        "server.served_model_name",
        "server.metrics",
    }
]
VALUES = ("64", "0.5", "true", "flashinfer", "xgrammar", "full")


@pytest.mark.parametrize("path", UNUSED)
def test_a_value_that_is_left_out_is_said(path):
    answers = [
        run("up", "tiny-cpu", "--dry-run", "--set", f"{path}={value}", "--json").json for value in VALUES
    ]
    assert any(path in f["summary"] for answer in answers for f in answer["findings"])


@pytest.mark.parametrize(
    "command", [("up", "--dry-run"), ("up",), ("doctor",), ("profile", "explain")], ids=" ".join
)
@pytest.mark.parametrize(
    "words",
    [
        ("--engine-version", "0.5.17"),
        ("--python", "/nonexist"),
        ("--gpus", "abc"),
        ("--runtime", "docker"),
        ("--image", "an/image"),
        ("--name", "../x"),
    ],
    ids=" ".join,
)
def test_an_option_that_cannot_be_obeyed_is_refused(command, words):
    assert run(*command, "tiny-cpu", *words, "--json").exit == 2


def test_the_other_releases_of_an_engine_that_is_not_meant_are_not_judged():
    assert run("profile", "explain", "tiny-cpu", "--all-versions").exit == 2
