"""The commands and how one is run: each call builds a Typer app of exactly one command.

A Typer group would parse every call twice and import pydantic for it (100 ms), even for `--help`.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import typer
from typer import TyperException

from dflashctl.cli.table import ENTRIES, GROUPS, find
from dflashctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflashctl.cli.table import Entry
    from dflashctl.env import Env


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What Typer carries to the callbacks: the outside world, and the words after `--`."""

    env: Env
    raw_args: tuple[str, ...] = ()


def invoke(argv: Sequence[str], env: Env) -> object:
    """What the command returned: a Report, or several from a live view; an exit code for `--help`."""
    words, raw_args = _split(argv)
    entry = find(words)
    if entry is None:
        raise _unknown(words)
    name = " ".join(("dflashctl", *entry.words))
    try:
        return typer_app(entry)(
            words[len(entry.words) :],
            standalone_mode=False,
            obj=Invocation(env=env, raw_args=raw_args),
            prog_name=name,
        )
    except TyperException as error:
        if error.exit_code == ExitCode.USAGE:
            raise UsageError(_message(error), hint=f"{name} --help") from error
        raise


def callback(entry: Entry) -> Callable[..., object]:
    """The function that carries the command's signature and help."""
    found: Any = getattr(importlib.import_module(f"dflashctl.cli.{entry.module}"), entry.attribute)
    return found  # type: ignore[no-any-return]


def typer_app(entry: Entry) -> typer.Typer:
    """An app of that one command."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(callback(entry))
    return app


def _split(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words before `--` for Typer, those after it for the engine."""
    words = list(argv)
    if "--" not in words:
        return words, ()
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def _unknown(words: Sequence[str]) -> UsageError:
    group = words[0] if words and words[0] in GROUPS else None
    if group is not None:
        known = [entry.words[1] for entry in ENTRIES if entry.words[0] == group and len(entry.words) > 1]
        given = words[1] if len(words) > 1 else ""
    else:
        known = [*dict.fromkeys(entry.words[0] for entry in ENTRIES)]
        given = words[0] if words else ""
    before = f"dflashctl {group}" if group else "dflashctl"
    near = get_close_matches(given, known, n=2)
    advice = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
    return UsageError(f"{before} has no command {given!r}; {advice}", hint=f"{before} --help")


def _message(error: TyperException) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    return text.strip().rstrip(".")
