"""The next step that is told is a command that means the same plan, whatever was asked for."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from dflashctl.core.options import PlanRequest
from tests.support.cli import run

ROOT = Path(__file__).resolve().parents[2]
PROFILE = (ROOT / "profiles/tiny-cpu.yaml").read_text()
OPTIONS = [
    ("--port", "51091"),
    ("--host", "127.0.0.2"),
    ("--set", "memory.context_length=512", "--set", "server.served_model_name=two words"),
    ("--block-size", "8", "--name", "other"),
    ("--skip-doctor", "--skip-fetch", "--offline"),
    ("--port", "51091", "--", "--log-level", "warning", "--served-model-name", "it's"),
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("command", [("up", "--dry-run"), ("profile", "explain")], ids=" ".join)
def test_the_step_repeats_what_was_asked(command, options):
    plan = run("up", "tiny-cpu", "--dry-run", "--json", *options).json
    words = [word for word in command if not word.startswith("--")]
    flags = [word for word in command if word.startswith("--")]
    (step,) = run(*words, "tiny-cpu", *flags, "--json", *options).json["next_steps"]
    program, *again = shlex.split(step)
    assert program == "dflashctl"
    extra = () if "--dry-run" in again else ("--dry-run",)
    cut = again.index("--") if "--" in again else len(again)
    repeated = run(*again[:cut], *extra, "--json", *again[cut:]).json
    assert repeated["data"]["fingerprint"] == plan["data"]["fingerprint"]
    assert repeated["data"]["name"] == plan["data"]["name"]


def test_the_line_of_every_field():
    request = PlanRequest(profile="a b", sets=("x.y=1 2",), port=1, dry_run=True, raw_args=("--z", "$q"))
    assert request.line("up") == "dflashctl up 'a b' --set 'x.y=1 2' --port 1 --dry-run -- --z '$q'"
    assert request.line("up", without=("dry_run", "sets")) == "dflashctl up 'a b' --port 1 -- --z '$q'"


def test_every_bad_profile_is_told_with_all_that_is_wrong(tmp_path):
    (tmp_path / "good.yaml").write_text(PROFILE)
    (tmp_path / "bad1.yaml").write_text("summary: 3\nengin: x\n")
    (tmp_path / "bad2.yaml").write_text("[")
    words = ("profile", "validate", "./bad1.yaml", "./good.yaml", "nothing", "./bad2.yaml")
    answer = run(*words, "--json", cwd=tmp_path)
    assert answer.exit == 78
    told = " ".join(error["message"] for error in answer.json["errors"])
    assert len(answer.json["errors"]) == 3
    assert all(word in told for word in ("bad1.yaml", "bad2.yaml", "'nothing'", "engin"))
    assert [p["name"] for p in answer.json["data"]["profiles"]] == ["good"]
    text = run(*words, cwd=tmp_path)
    assert "ok   good" in text.out
    assert text.err.count("error: ") == 3


def test_the_step_after_a_good_profile_can_be_taken(tmp_path):
    (tmp_path / "w x").mkdir()
    (tmp_path / "w x" / "mine.yaml").write_text(PROFILE)
    answer = run("profile", "validate", "w x/mine.yaml", "--json", cwd=tmp_path)
    for step in answer.json["next_steps"]:
        assert run(*shlex.split(step)[1:], "--port", "51092", cwd=tmp_path).exit == 0, step


def test_a_profile_that_was_written_is_said_and_not_printed(tmp_path):
    command = "python -m sglang.launch_server --model-path Qwen/Qwen3-8B --speculative-algorithm DFLASH "
    command += "--speculative-draft-model-path z-lab/Qwen3-8B-DFlash-b16"
    result = run("profile", "new", "x", "--offline", "--from-command", command, "-o", "x.yaml", cwd=tmp_path)
    assert "written" in result.out
    assert "x.yaml" in result.out
    assert "target:" not in result.out
    assert "target:" in (tmp_path / "x.yaml").read_text()


@pytest.mark.parametrize(
    "sweep",
    [("block_size=8,99",), ("memory.context_length=512,-1",), ("block_size=4", "server.port=30000,99999999")],
)
def test_a_sweep_is_refused_before_its_first_server_starts(tmp_path, sweep):
    options = [word for one in sweep for word in ("--sweep", one)]
    state = {"HOME": str(tmp_path), "DFLASHCTL_STATE_DIR": str(tmp_path / "s")}
    answer = run(
        "bench", "--profile", "tiny-cpu", *options, "--no-baseline", "--json", cwd=tmp_path, environ=state
    )
    assert answer.exit == 78, answer.out
    assert "reference FILE" not in str(answer.json["errors"])
    assert list(tmp_path.glob("dflashctl-bench-*.json")) == []
    assert not (tmp_path / "s" / "v1" / "instances" / "tiny-cpu-bench").exists()
