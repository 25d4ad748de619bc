"""A disk that does not answer holds nobody up: not the one that asks, nor its end."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from dflashctl.edges.folders import read_folders
from dflashctl.edges.silent import LIMIT_S as SILENT_S
from dflashctl.edges.silent import silent
from dflashctl.edges.weight_store import FileWeightStore
from tests.support.mute_disk import mute_disk

LIMIT_S = 0.5


@pytest.fixture
def mute(tmp_path):
    with mute_disk(tmp_path / "mute") as place:
        yield place


def test_any_answer_is_one(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    asked = [
        str(tmp_path),
        str(tmp_path / "new/folder"),
        str(tmp_path / "file/in"),
        str(tmp_path / "loop"),
        "\0",
    ]
    assert silent(asked, LIMIT_S) == frozenset()
    assert silent([], LIMIT_S) == frozenset()


@pytest.mark.parametrize("way", ["itself", "below", "link"])
def test_no_answer_is_none(mute, tmp_path, way):
    (tmp_path / "models").symlink_to(mute)
    asked = {"itself": mute, "below": mute / "hub/models", "link": tmp_path / "models/hub"}[way]
    assert silent([str(asked), str(tmp_path)], LIMIT_S) == {str(asked)}


def test_the_folders_of_a_machine_are_told_with_what_is_known(mute, tmp_path):
    folders = read_folders({"HOME": str(tmp_path), "HF_HUB_CACHE": str(mute / "hub")})
    weights = next(folder for folder in folders if folder.kind == "weights")
    assert (weights.silent, weights.file_system, weights.exists, weights.writable) == (
        True,
        "fuse",
        None,
        None,
    )
    assert not any(folder.silent for folder in folders if folder.kind != "weights")


def test_a_store_asks_a_silent_disk_once(mute, tmp_path):
    store = FileWeightStore(environ={"HOME": str(tmp_path)})
    assert store.answers(tmp_path)
    assert not store.answers(mute)
    began = time.monotonic()
    assert not any(store.answers(mute) for _ in range(100))
    assert time.monotonic() - began < SILENT_S


PROFILE = """
summary: a target on a disk that is away
engine: {{name: sglang}}
target: {{path: {path}}}
speculative: {{algorithm: NONE}}
"""


@pytest.mark.parametrize("command", ["fetch --plan", "fetch", "fetch --verify"])
@pytest.mark.parametrize("kind", ["cache", "local"])
def test_a_command_says_so_and_ends(mute, tmp_path, command, kind):
    profile = "qwen3-8b-h100"
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "HF_HUB_OFFLINE": "1"}
    if kind == "local":
        (tmp_path / "there.yaml").write_text(PROFILE.format(path=mute / "model"))
        profile = "there.yaml"
    else:
        environ["HF_HOME"] = str(mute)
    name, *options = command.split()
    ended = subprocess.run(
        [sys.executable, "-m", "dflashctl", name, profile, *options],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 69, ended.stderr
    assert f"{mute}" in ended.stderr
    assert "does not answer" in ended.stderr
    assert ("HF_HUB_CACHE" in ended.stderr) is (kind == "cache")


def test_doctor_tells_it_beside_all_else(mute, tmp_path):
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "HF_HOME": str(mute)}
    ended = subprocess.run(
        [sys.executable, "-m", "dflashctl", "doctor"],
        cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 1
    assert "weights folder ~/mute/hub on fuse does not answer" in ended.stdout + ended.stderr
    assert "checks passed" in ended.stdout + ended.stderr
