"""What the help says of a command is what its parser takes."""

from __future__ import annotations

import re

import pytest
import typer.main

from dflashctl.cli.app import typer_app
from dflashctl.cli.stored_help import HELP
from dflashctl.cli.table import ENTRIES
from tests.support.cli import run

SHARED = ("--offline", "--dry-run", "--skip-doctor", "--skip-fetch")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: " ".join(entry.words))
def test_usage_and_options_are_the_parser_s(entry):
    text = HELP[" ".join(entry.words)]
    usage = text.splitlines()[0]
    command = typer.main.get_command(typer_app(entry))
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    assert len(usage.split("[OPTIONS]")[1].split()) == len(arguments), usage
    for option in (p for p in command.params if p.param_type_name == "option"):
        for name in (*option.opts, *option.secondary_opts):
            line = next(line for line in text.splitlines() if re.search(rf"(^| ){name}( |,|$)", line))
            if option.is_flag:
                assert not re.search(rf"{name} [A-Z]+", line), line


@pytest.mark.parametrize("command", [("doctor",), ("profile", "explain"), ("up",)], ids=" ".join)
def test_the_shared_options_are_taken_by_every_command_that_plans(command):
    options = () if command == ("up",) else SHARED
    plain = run(*command, "kimi-k3-b300", "--engine-version", "0.5.22", "--dry-run", "--json")
    more = run(*command, "kimi-k3-b300", "--engine-version", "0.5.22", *(options or SHARED), "--json")
    assert more.exit == plain.exit
    assert all(option in HELP[" ".join(command)] for option in SHARED)
