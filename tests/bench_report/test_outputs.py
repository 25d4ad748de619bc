"""Files that cannot be written are found before the first request, and trying leaves nothing behind."""

from __future__ import annotations

import os

import pytest

from dflashctl.commands.bench import bench
from dflashctl.commands.output_files import require_outputs
from dflashctl.commands.smoke import smoke
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.errors import UsageProblem
from dflashctl.core.smoke import SmokeOptions
from dflashctl.env import Env
from tests.fakes.mock_sse import MockServer

UNWRITABLE = ["plain/x.json", "plain/deep/x.json", "/proc/x.json", "folder", "/dev/null", "n" * 300]
OPTIONS = {"output": "--output", "csv": "--csv", "jsonl": "--jsonl"}


@pytest.fixture
def env(tmp_path):
    (tmp_path / "plain").write_text("mine")
    (tmp_path / "folder").mkdir()
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})


@pytest.fixture
def server():
    with MockServer() as running:
        yield running


@pytest.mark.parametrize("path", UNWRITABLE, ids=lambda path: path[:20])
@pytest.mark.parametrize("field", OPTIONS)
def test_bench_sends_nothing_when_a_result_could_not_be_written(env, server, tmp_path, field, path):
    with pytest.raises(UsageProblem, match=f"{OPTIONS[field]} |no result file|cannot be read"):
        bench(env, BenchOptions(url=server.url, **{"output": "x.json", field: path}))
    assert server.requests == []
    assert sorted(os.listdir(tmp_path)) == ["folder", "plain"]
    assert (tmp_path / "plain").read_text() == "mine"


@pytest.mark.parametrize("path", UNWRITABLE, ids=lambda path: path[:20])
def test_smoke_proves_nothing_when_its_reference_could_not_be_written(env, server, path):
    with pytest.raises(UsageProblem, match="--save-reference"):
        smoke(env, SmokeOptions(url=server.url, save_reference=path))
    assert server.requests == []


def test_a_file_that_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    require_outputs([("--csv", tmp_path / "old.csv"), ("--output", tmp_path / "new" / "deep" / "x.json")])
    assert (tmp_path / "old.csv").read_text() == "old"
    assert os.listdir(tmp_path) == ["old.csv"]
