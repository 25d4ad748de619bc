"""The command line as scripts rely on it: envelope, exit codes, help with examples, stored texts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dflashctl.cli.describe import CommandInfo, commands
from dflashctl.cli.stored import stored_files
from dflashctl.core.errors import ExitCode
from tests.support.cli import run

KEYS = {"schema_version", "command", "outcome", "exit_code", "data", "findings", "errors", "next_steps"}


def flat(infos: tuple[CommandInfo, ...]):
    for info in infos:
        if not info.children:
            yield info
        yield from info.children


ALL = {" ".join(info.words): info for info in flat(commands())}


@pytest.mark.parametrize("path", stored_files(), ids=lambda p: p.name)
def test_a_stored_file_is_what_the_code_makes(path):
    assert path.read_text(encoding="utf-8") == stored_files()[path], "run: python -m dflashctl.cli.stored"


@pytest.mark.parametrize("name", ALL)
def test_help_of_every_command_has_an_example(name):
    result = subprocess.run(
        [sys.executable, "-m", "dflashctl", *name.split(), "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    examples = result.stdout.split("Examples:\n")[1].split("\n\n")[0].splitlines()
    assert examples
    assert all(line.startswith(f"  dflashctl {name}") for line in examples)


@pytest.mark.parametrize("name", ALL)
def test_an_example_is_a_command_line_that_parses(name):
    for line in ALL[name].text.split("\n\n"):
        if line.startswith("Example: "):
            words = line.removeprefix("Example: dflashctl ").split(">")[0].split()
            known = {n for option in ALL[name].options for n in option.names} | {"--", "-"}
            given = {word for word in words if word.startswith("-")}
            assert given <= known, line


@pytest.mark.parametrize("name", ALL)
def test_every_command_takes_json(name):
    assert any("--json" in option.names for option in ALL[name].options)


@pytest.mark.parametrize("name", ALL)
def test_a_wrong_option_is_usage_in_the_envelope(name):
    result = run(*name.split(), "--no-such-option", "--json")
    assert result.exit == ExitCode.USAGE
    assert set(result.json) == KEYS
    assert result.json["command"] == name
    assert result.json["exit_code"] == ExitCode.USAGE
    assert "--no-such-option" in result.json["errors"][0]["message"]


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("profile", "list"), ExitCode.OK),
        (("profile", "show", "tiny-cpu"), ExitCode.OK),
        (("profile", "show", "tiny-cup"), ExitCode.PERMANENT),
        (("profile", "validate", "tiny-cpu", "kimi-k3-b300"), ExitCode.OK),
        (("completion", "bash"), ExitCode.OK),
        (("completion", "tcsh"), ExitCode.USAGE),
        (("up",), ExitCode.USAGE),
        (("up", "tiny-cpu", "--profile", "tiny-gpu"), ExitCode.USAGE),
        (("up", "tiny-cpu", "--set", "port"), ExitCode.USAGE),
        (("up", "tiny-cpu", "--set", "server.prot=1"), ExitCode.PERMANENT),
        (("up", "tiny-cpu", "--dry-run"), ExitCode.OK),
        (("up", "kimi-k3-b300", "--dry-run", "--engine-version", "0.5.22"), ExitCode.OK),
        (("up", "kimi-k3-b300", "--dry-run", "--engine-version", "0.5.19"), ExitCode.PERMANENT),
        (("up", "kimi-k3-b300", "--engine-version", "0.5.22"), ExitCode.USAGE),
        (("up", "tiny-cpu", "--block-size", "17", "--dry-run"), ExitCode.PERMANENT),
        (("status",), ExitCode.NOT_RUNNING),
        (("status", "nobody"), ExitCode.NOT_RUNNING),
        (("logs", "nobody"), ExitCode.NOT_RUNNING),
        (("down", "nobody"), ExitCode.OK),
    ],
)
def test_text_and_json_agree_on_the_exit_code(argv, code):
    text, as_json = run(*argv), run(*argv, "--json")
    assert text.exit == as_json.exit == code
    assert set(as_json.json) == KEYS
    assert as_json.json["exit_code"] == code
    assert as_json.json["schema_version"] == 1
    assert as_json.json["outcome"] == ("ok" if code == ExitCode.OK else "failed")
    assert as_json.out.count("\n") == 1
    if code != ExitCode.OK:
        assert text.out == "" or as_json.json["data"]
        assert "error: " in text.err or (code == ExitCode.NOT_RUNNING and "next: dflashctl up" in text.err)


def test_what_follows_two_dashes_is_not_ours():
    result = run("up", "tiny-cpu", "--dry-run", "--", "--json")
    assert not result.out.startswith("{")


def test_a_bug_writes_a_crash_report(tmp_path):
    class Broken:
        def list(self):
            msg = "secret-free"
            raise ZeroDivisionError(msg)

    result = run(
        "profile", "list", "--json", profiles=Broken(), environ={"DFLASHCTL_STATE_DIR": str(tmp_path)}
    )
    assert result.exit == ExitCode.BUG
    (report,) = tmp_path.glob("crash-*.txt")
    assert "ZeroDivisionError" in report.read_text()
    assert str(report) in result.json["errors"][0]["hint"]
    assert report.stat().st_mode & 0o077 == 0


def test_a_closed_reader_ends_quietly():
    command = f"{sys.executable} -m dflashctl profile show reference | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in result.stderr


def test_exit_code_page_lists_every_code():
    from pathlib import Path

    page = (Path(__file__).resolve().parents[2] / "docs" / "exit-codes.md").read_text()
    for code in ExitCode:
        assert f"| {int(code)} | {code.name.lower()} |" in page
