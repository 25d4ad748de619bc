"""A dry run says of the pair what is to be known from what lies on disk; the network is never asked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import dflashctl
from dflashctl.commands.up import up
from dflashctl.core.errors import ExitCode
from dflashctl.core.options import PlanRequest
from dflashctl.env import Env

PAIR = Path(dflashctl.__file__).parent / "reference/tiny"
PROFILE = """
summary: the tiny pair from folders
engine: {name: sglang}
target: {path: target}
draft: {path: draft}
speculative: {algorithm: DFLASH, block_size: 16}
backends: {attention: triton, draft_attention: triton}
requirements: {gpus: 1}
"""


@pytest.fixture
def place(tmp_path):
    for role in ("target", "draft"):
        shutil.copytree(PAIR / role, tmp_path / role)
    (tmp_path / "pair.yaml").write_text(PROFILE)
    return tmp_path


def change(place, **fields):
    file = place / "draft/config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))


def dry_run(place, *sets):
    env = Env(environ={"HOME": str(place), "HF_ENDPOINT": "http://127.0.0.1:9"}, cwd=place)
    return up(env, PlanRequest(profile="pair.yaml", dry_run=True, sets=sets))


def told(report):
    return [error.message for error in report.errors]


def test_a_pair_that_fits_is_planned(place):
    report = dry_run(place)
    assert report.exit_code is ExitCode.OK
    assert told(report) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [({"vocab_size": 77}, "the vocabularies differ"), ({"hidden_size": 8}, "hidden")],
)
def test_a_pair_that_does_not_fit_is_told_and_fails(place, fields, words):
    change(place, **fields)
    report = dry_run(place)
    assert report.exit_code is ExitCode.PERMANENT
    assert any(words in summary for summary in told(report))
    assert dry_run(place, "speculative.algorithm=NONE").exit_code is ExitCode.OK


def test_weights_say_more_than_configs(place):
    file = place / "draft/config.json"
    dflash = json.loads(file.read_text())["dflash_config"]
    change(place, dflash_config=dflash | {"target_layer_ids": dflash["target_layer_ids"][:-1]})
    assert any("fc takes" in summary for summary in told(dry_run(place)))


def test_what_the_engines_rule_says_is_not_said_twice(place):
    report = dry_run(place, "memory.context_length=100000")
    assert report.exit_code is ExitCode.PERMANENT
    (only,) = told(report)
    assert "longer than the draft's" in only


def test_half_a_pair_says_nothing(place):
    (place / "draft/config.json").unlink()
    assert told(dry_run(place)) == []
