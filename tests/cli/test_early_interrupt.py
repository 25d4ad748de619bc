"""Ctrl-C while the program is still importing: exit 130 with a sentence, as at any later moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys

class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
sys.argv = ["dflashctl", *{words!r}]
from dflashctl.main import main
main()
"""
MODULES = [
    "dflashctl.streams",
    "dflashctl.boundary",
    "dflashctl.core.errors",
    "dflashctl.env",
    "dflashctl.ui.screen",
    "dflashctl.cli.app",
    "dflashctl.cli.profile",
    "dflashctl.commands.profile_list",
    "dflashctl.edges.profile_store",
    "dflashctl.ui.text",
    "typer",
    "rich.console",
    "yaml",
    "json",
]


@pytest.mark.parametrize("json", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("module", MODULES)
def test_an_interrupt_during_an_import(module, json):
    words = ["profile", "list", *json]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module, words=words)],
        capture_output=True,
        text=True,
        check=False,
    )
    if module in ("ui.text", "dflashctl.ui.text", "rich.console") and json:
        return  # not imported at all
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert "interrupted" in done.stderr + done.stdout
