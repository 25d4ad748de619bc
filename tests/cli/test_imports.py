"""What the fast answers may import: each of these is asked often, and must not wait for libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {
    "typer", "rich", "yaml", "huggingface_hub", "pynvml", "docker", "numpy", "aiohttp", "asyncio", "tokenizers",
    "safetensors", "jinja2", "platformdirs", "ssl", "http.client", "urllib.request", "email", "multiprocessing",
}  # fmt: skip
PROGRAM = """
import io, contextlib, sys
before = set(sys.modules)
from dflashctl.main import run
with contextlib.redirect_stdout(io.StringIO()):
    run({argv!r})
print("\\n".join(sorted(set(sys.modules) - before)))
"""


def imported(argv: list[str]) -> set[str]:
    out = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(argv=argv)], capture_output=True, text=True, check=True
    ).stdout
    return set(out.split())


@pytest.mark.parametrize(
    "argv", [["--version"], ["--help"], [], ["__complete", "profiles"], ["__complete", "instances"]]
)
def test_stored_answers_import_only_themselves(argv):
    assert (
        imported(argv) & (HEAVY | {"dataclasses", "inspect", "json", "subprocess", "typing_extensions"})
        == set()
    )


def test_version_and_help_import_nothing_but_the_package():
    for argv in (["--version"], ["--help"]):
        assert {m for m in imported(argv) if not m.startswith("dflashctl")} == set()


def test_status_json_imports_no_library():
    assert imported(["status", "--json"]) & HEAVY == set()


@pytest.mark.parametrize("command", [["up"], ["profile", "list"], ["doctor"]])
def test_help_of_a_command_is_stored_too(command):
    assert {m for m in imported([*command, "--help"]) if not m.startswith("dflashctl")} == set()
