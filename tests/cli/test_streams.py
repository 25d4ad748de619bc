"""Output that cannot take what is written: every command ends with a code of its own and no traceback."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from tests.support.program import Program, free_port, wait_for

ANSWERS = [
    ("--version",),
    ("--help",),
    (),
    ("__complete", "profiles"),
    ("status", "--json"),
    ("down", "none"),
    ("profile", "list"),
    ("profile", "show", "reference"),
    ("profile", "explain", "kimi-k3-b300", "--engine-version", "0.5.22"),
    ("up", "tiny-cpu", "--dry-run"),
]
PORTED = {"up tiny-cpu --dry-run"}


@pytest.fixture
def program(tmp_path):
    program = Program(tmp_path)
    yield program
    program.close()


def words_of(words):
    return (*words, "--port", str(free_port())) if " ".join(words) in PORTED else words


def shell(program, redirection, words):
    """The program under `sh` with a redirection that subprocess cannot make."""
    line = f'exec "$@" {redirection}'
    return subprocess.run(
        ["bash", "-c", line, "bash", sys.executable, "-m", "dflashctl", *words_of(words)],
        env=program.environment,
        cwd=program.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("words", ANSWERS, ids=" ".join)
@pytest.mark.parametrize("redirection", ["<&- >&- 2>&-", ">&-", "2>/dev/full"])
def test_a_closed_stream_changes_no_exit_code(program, words, redirection):
    assert shell(program, redirection, words).returncode == shell(program, "", words).returncode
    assert "Traceback" not in shell(program, redirection, words).stderr


@pytest.mark.parametrize("words", ANSWERS, ids=" ".join)
def test_a_full_device_is_said_in_one_sentence(program, words):
    result = shell(program, ">/dev/full", words)
    normal = shell(program, "", words)
    if normal.stdout:
        assert result.returncode == (normal.returncode or 69)
        assert "error: the output cannot be written: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr
    assert "Exception ignored" not in result.stderr


@pytest.mark.parametrize("words", ANSWERS, ids=" ".join)
def test_a_reader_that_is_gone_ends_it_quietly(program, words):
    normal = shell(program, "", words)
    reader, writer = os.pipe()
    os.close(reader)
    process = program.start(*words_of(words), stdout=writer)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert process.returncode == (141 if normal.stdout else normal.returncode)
    assert "Traceback" not in err
    assert "BrokenPipe" not in err


POOR = [
    {"PYTHONIOENCODING": "ascii"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.parametrize("poor", POOR, ids=str)
@pytest.mark.parametrize("words", [*ANSWERS, ("up", "kimi-k3-b300", "--dry-run")], ids=" ".join)
def test_an_encoding_that_lacks_signs_is_written_with_plain_ones(program, words, poor):
    normal = shell(program, "", words)
    program.environment.update(poor)
    result = shell(program, "", words)
    assert result.returncode == normal.returncode
    assert "Traceback" not in result.stderr
    if "--json" in words:
        assert set(json.loads(result.stdout)) == set(json.loads(normal.stdout))


def test_up_in_front_stops_in_order_when_its_terminal_is_closed(program):
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    terminal = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    process = program.start("up", "tiny-cpu", "--port", str(free_port()), start_new_session=True, **terminal)
    os.close(theirs)
    shown = bytearray()

    def serving():
        with contextlib.suppress(BlockingIOError):
            shown.extend(os.read(ours, 65536))
        return b"serving;" in shown

    wait_for(serving, "the end of the proofs")
    os.close(ours)
    process.send_signal(signal.SIGHUP)
    assert process.wait(timeout=60) == 0
    assert program.record("tiny-cpu")["phase"] == "stopped"
    assert not list(program.state.glob("crash-*"))


def test_a_working_folder_that_was_removed_is_refused(program, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    result = subprocess.run(
        ["bash", "-c", f'cd {gone} && rmdir {gone} && exec "$@"', "bash"]  # noqa: RUF005
        + [sys.executable, "-m", "dflashctl", "profile", "list", "--json"],
        env={**program.environment, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 78
    assert "working folder" in json.loads(result.stdout)["errors"][0]["message"]
