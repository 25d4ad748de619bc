"""Folders that this user may not enter: a container run as another user than the owner of its HOME."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.program import Program, free_port

PROFILE = (Path(__file__).resolve().parents[2] / "profiles/tiny-cpu.yaml").read_text()
_RIGHTS = "-dac_override,-dac_read_search"
# Root may read everything unless these two rights are taken away.
PLAIN_USER = ("setpriv", f"--bounding-set={_RIGHTS}", f"--inh-caps={_RIGHTS}") if os.geteuid() == 0 else ()

pytestmark = pytest.mark.skipif(PLAIN_USER != () and shutil.which("setpriv") is None, reason="no setpriv")


@pytest.fixture
def closed(tmp_path):
    folder = tmp_path / "closed"
    (folder / "profiles").mkdir(parents=True)
    (folder / "profiles" / "mine.yaml").write_text(PROFILE)
    folder.chmod(0)
    yield folder
    folder.chmod(0o700)


@pytest.mark.parametrize("variable", ["HOME", "DFLASHCTL_CONFIG_DIR", "XDG_CONFIG_HOME", "HF_HOME"])
@pytest.mark.parametrize(
    "words",
    [
        ("profile", "list"),
        ("profile", "show", "tiny-cpu"),
        ("fetch", "tiny-cpu"),
        ("doctor", "tiny-cpu"),
        ("up", "tiny-cpu", "--dry-run"),
        ("up", "kimi-k3-b300", "--dry-run"),
    ],
)
def test_a_folder_that_may_not_be_searched_is_passed_over(tmp_path, closed, variable, words):
    port = ("--port", str(free_port())) if words[0] in {"doctor", "up"} else ()
    answer = Program(tmp_path, prefix=PLAIN_USER, **{variable: str(closed)}).json(*words, *port)
    assert answer["exit_code"] == 0, answer["errors"]


@pytest.mark.parametrize(
    "words",
    [
        ("profile", "show", "{}"),
        ("profile", "validate", "{}"),
        ("profile", "explain", "{}"),
        ("up", "{}", "--dry-run"),
        ("doctor", "--machine", "{}"),
        ("fetch", "{}"),
    ],
)
@pytest.mark.parametrize("name", ["profiles/mine.yaml", "nothing.yaml"])
def test_a_file_that_is_named_and_may_not_be_read_is_refused(tmp_path, closed, words, name):
    program = Program(tmp_path, prefix=PLAIN_USER)
    answer = program.json(*(word.format(closed / name) for word in words))
    assert answer["exit_code"] == 78
    assert str(closed / name) in answer["errors"][0]["message"]
    assert "ermission denied" in answer["errors"][0]["message"]


def test_a_working_folder_that_may_not_be_searched(tmp_path, closed):
    program = Program(tmp_path, prefix=PLAIN_USER)
    words = (*PLAIN_USER, "sh", "-c", f'cd {tmp_path} && exec "$@"', "sh")
    program.prefix = words
    (tmp_path / "profiles").mkdir(mode=0)
    try:
        assert program.json("profile", "list")["exit_code"] == 0
        assert program.json("up", "tiny-cpu", "--dry-run", "--port", str(free_port()))["exit_code"] == 0
    finally:
        (tmp_path / "profiles").chmod(0o700)
