"""The real parsers of the releases, asked once per session, and their matrix at the end."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from dflashctl.engines.sglang import builds
from dflashctl.engines.sglang.catalogue import newest, releases

HERE = Path(__file__).parent
MATRIX: dict[tuple[str, str], str] = {}


class RealParser:
    """A child of the light environment with one release; `ask` sends it a line of JSON and reads one.

    `parser_child.py` answers for argument lists: None where the release's own parser accepts, else its message.
    """

    def __init__(self, folder, release, errors, script="parser_child.py"):
        self.release = release
        self.sources = folder / "src" / release
        self._errors = errors
        with errors.open("w") as stderr:
            self._child = self._started(folder, script, stderr)
        self.options = self._line()

    def _started(self, folder, script, stderr):
        return subprocess.Popen(
            [folder / "env" / "bin" / "python", HERE / script, builds.INTROSPECT],
            env={**os.environ, "PYTHONPATH": str(self.sources)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            cwd=self.sources,
        )

    def ask(self, commands):
        self._child.stdin.write(json.dumps(commands) + "\n")
        self._child.stdin.flush()
        return self._line()

    def _line(self):
        line = self._child.stdout.readline()
        assert line, self._errors.read_text()[-3000:]
        return json.loads(line)

    def close(self):
        self._child.stdin.close()
        self._child.wait(30)
        self._child.stdout.close()


@pytest.fixture(scope="session")
def parsers_folder():
    folder = os.environ.get("DFLASHCTL_TEST_PARSERS")
    if folder:
        return Path(folder)
    if os.environ.get("DFLASHCTL_REQUIRE_PARSERS"):
        pytest.fail("DFLASHCTL_TEST_PARSERS names no folder: bash .ci/parsers.sh makes it")
    return pytest.skip("needs DFLASHCTL_TEST_PARSERS=$(bash .ci/parsers.sh)")


@pytest.fixture(scope="module", params=releases())
def parser(request, parsers_folder, tmp_path_factory):
    """The real parser of each release in turn."""
    real = RealParser(parsers_folder, request.param, tmp_path_factory.mktemp("parser") / "errors")
    yield real
    real.close()


@pytest.fixture(scope="module")
def resolution(parsers_folder, tmp_path_factory):
    """The newest release's own resolution of arguments, on GPUs that it is told of."""
    errors = tmp_path_factory.mktemp("resolution") / "errors"
    real = RealParser(parsers_folder, newest(), errors, "resolution_child.py")
    yield real
    real.close()


def pytest_terminal_summary(terminalreporter):
    if not MATRIX:
        return
    terminalreporter.section("published commands and shipped profiles on the real parsers")
    rows = sorted({row for row, _ in MATRIX})
    width = max(map(len, rows))
    short = [release.removeprefix("0.5.") for release in releases()]
    terminalreporter.write_line(f"{'':{width}}  " + " ".join(f"{name:>2}" for name in short) + "   (0.5.N)")
    for row in rows:
        marks = [MATRIX.get((row, release), " ") for release in releases()]
        terminalreporter.write_line(f"{row:{width}}  " + " ".join(f"{mark:>2}" for mark in marks))
    terminalreporter.write_line("= accepted as asked   ~ accepted with changes   x refused, and rightly so")
