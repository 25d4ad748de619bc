"""The Typer app: built with only the commands that a call needs."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer import TyperException

from dflashctl.core.errors import ExitCode, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dflashctl.env import Env

SUMMARY = "Serve a target model with its DFlash drafter: fetch, check, plan, start, supervise, prove, measure."


class UsageError(UsageProblem):
    """A command line that Typer refuses."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A command: where its Typer signature lives; `group` entries are apps of their own."""

    name: str
    module: str
    attribute: str
    group: bool = False


# In the order of the help text: the main job first.
ENTRIES = (
    Entry(name="up", module="serve", attribute="up"),
    Entry(name="down", module="serve", attribute="down"),
    Entry(name="status", module="serve", attribute="status"),
    Entry(name="logs", module="serve", attribute="logs"),
    Entry(name="diagnose", module="serve", attribute="diagnose"),
    Entry(name="doctor", module="setup", attribute="doctor"),
    Entry(name="fetch", module="setup", attribute="fetch"),
    Entry(name="smoke", module="measure", attribute="smoke"),
    Entry(name="bench", module="measure", attribute="bench_app", group=True),
    Entry(name="profile", module="profile", attribute="profile_app", group=True),
    Entry(name="completion", module="completion", attribute="completion"),
)


def build(names: Sequence[str] | None = None) -> typer.Typer:
    """The app with the commands `names`, all of them when None."""
    app = typer.Typer(
        name="dflashctl",
        help=SUMMARY,
        add_completion=False,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_root)
    for entry in ENTRIES:
        if names is None or entry.name in names:
            _add(app, entry)
    return app


def _root(
    *, version: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True)
) -> None:
    if version:
        from dflashctl import __version__

        typer.echo(f"dflashctl {__version__}")
        raise typer.Exit


def _add(app: typer.Typer, entry: Entry) -> None:
    found: Any = getattr(importlib.import_module(f"dflashctl.cli.{entry.module}"), entry.attribute)
    if entry.group:
        app.add_typer(found, name=entry.name)
    else:
        callback: Callable[..., object] = found
        app.command(entry.name, context_settings=getattr(found, "context_settings", None))(callback)


def invoke(argv: Sequence[str], env: Env) -> object:
    """What the command returned: a Report, or several from a live view; an exit code for `--help`."""
    known = {entry.name for entry in ENTRIES}
    app = build((argv[0],) if argv and argv[0] in known else None)
    before, after = _split(argv)
    try:
        return app(before, standalone_mode=False, obj=Invocation(env=env, raw_args=after), prog_name="dflashctl")
    except TyperException as error:
        if error.exit_code == ExitCode.USAGE:
            raise UsageError(_message(error), hint=_hint(argv, known)) from error
        raise


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """What Typer carries to the callbacks: the outside world, and the words after `--`."""

    env: Env
    raw_args: tuple[str, ...] = ()


def command_name(argv: Sequence[str]) -> str:
    """The command as the envelope names it: "up", "profile show"."""
    words = [word for word in argv if not word.startswith("-")]
    groups = {entry.name for entry in ENTRIES if entry.group}
    if words and words[0] in groups and len(words) > 1 and words[1] in SUBCOMMANDS.get(words[0], ()):
        return " ".join(words[:2])
    return words[0] if words else "dflashctl"


SUBCOMMANDS = {
    "profile": ("list", "show", "validate", "explain", "diff", "new", "schema"),
    "bench": ("compare", "report"),
}


def _split(argv: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words before `--` for Typer, those after it for the engine."""
    words = list(argv)
    if "--" not in words:
        return words, ()
    at = words.index("--")
    return words[:at], tuple(words[at + 1 :])


def _message(error: TyperException) -> str:
    text = error.format_message() if hasattr(error, "format_message") else str(error)
    return text.strip().rstrip(".")


def _hint(argv: Sequence[str], known: set[str]) -> str:
    words = [argv[0]] if argv and argv[0] in known else []
    return " ".join(["dflashctl", *words, "--help"])
