"""A sweep as people type it: axes behind one `--sweep`, behind several, quoted, and before or after the instance."""

from __future__ import annotations

import json
import re

import pytest

from dflashctl.cli.describe import commands
from tests.fakes.mock_sse import MockServer, Wish
from tests.support.cli import run

BLOCKS, LOADS, RATE = "block_size=8,16", "concurrency=1,2", "rate=50"


@pytest.fixture(scope="module")
def server():
    with MockServer(Wish(chunks=3, gap_ms=1, ttft_ms=2)) as running:
        yield running


@pytest.mark.parametrize(
    "words",
    [
        ("--sweep", LOADS, RATE),
        ("--sweep", LOADS, "--sweep", RATE),
        ("--sweep", f"{LOADS} {RATE}"),
        (LOADS, "--sweep", RATE),
        ("--sweep", LOADS, RATE, "concurrency=2"),
        ("--sweep", LOADS, "--count", "2", RATE),
    ],
    ids=" ".join,
)
def test_every_form_measures_the_same_loads(server, tmp_path, words):
    result = run(
        *(
            "bench",
            "--url",
            server.url,
            "--count",
            "2",
            "--no-baseline",
            "--allow-slow-client",
            "--json",
            *words,
        ),
        cwd=tmp_path,
        environ={"HOME": str(tmp_path)},
    )
    assert result.exit == 0, result.out
    settings = [made["setting"] for made in result.json["data"]["runs"]]
    assert [(s["concurrency"], s["request_rate"]) for s in settings] == [(1, None), (2, None), (None, 50.0)]


@pytest.mark.parametrize(
    "words",
    [
        ("one", "--sweep", BLOCKS, LOADS),
        ("--sweep", BLOCKS, "one", LOADS),
        ("--sweep", BLOCKS, LOADS, "one"),
        (LOADS, "one", "--sweep", BLOCKS),
    ],
    ids=" ".join,
)
def test_the_instance_may_stand_anywhere(tmp_path, words):
    result = run("bench", *words, cwd=tmp_path, environ={"HOME": str(tmp_path)})
    assert result.exit == 3
    assert "'one'" in result.err


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        ((LOADS,), f"'{LOADS}' is no instance", f"--sweep {LOADS}"),
        ((LOADS, RATE), f"'{LOADS}' is no instance", f"--sweep {LOADS} {RATE}"),
        (("one", "two"), "one, two", "name one of them"),
        (("--sweep", LOADS, "one", "two"), "one, two", "name one of them"),
        (("--sweep", LOADS, "colour=red"), "cannot sweep 'colour'", "block_size"),
        (("--sweep", LOADS, "rate="), "'rate=' is no sweep", f"--sweep {BLOCKS}"),
    ],
    ids=str,
)
def test_what_is_neither_is_a_usage_error(tmp_path, words, message, hint):
    result = run("bench", *words, "--json", cwd=tmp_path, environ={"HOME": str(tmp_path)})
    assert result.exit == 2
    (error,) = result.json["errors"]
    assert message in error["message"]
    assert hint in json.dumps(result.json)


NAMING = [info for info in commands() if any(metavar.startswith("[NAME") for metavar, _ in info.arguments)]


@pytest.mark.parametrize("info", NAMING, ids=lambda info: " ".join(info.words))
def test_a_hint_on_a_bad_name_advises_no_option_that_the_command_lacks(tmp_path, info):
    result = run(*info.words, "No Name", cwd=tmp_path, environ={"HOME": str(tmp_path)})
    known = {name for option in info.options for name in option.names}
    assert result.exit == 2
    assert set(re.findall(r"--[a-z-]+", result.err)) - known == set()
