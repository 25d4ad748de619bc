"""The commands and options of the Typer app as plain data, for the stored help and the completions.

Uses only what Typer's public objects carry: the callbacks' signatures and the declared options.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args, get_origin

from dflashctl.cli.app import callback
from dflashctl.cli.table import ENTRIES, GROUPS


@dataclass(frozen=True, kw_only=True)
class OptionInfo:
    """`names` as typed, `metavar` None for a switch, `panel` the heading it stands under."""

    names: tuple[str, ...]
    metavar: str | None
    help: str
    panel: str = "Options"


@dataclass(frozen=True, kw_only=True)
class CommandInfo:
    """`words` are the command's words; `arguments` its positional ones, each as metavar and help.

    `help` is the first sentence of `text`, which is the whole docstring.
    """

    words: tuple[str, ...]
    help: str
    text: str = ""
    options: tuple[OptionInfo, ...] = ()
    arguments: tuple[tuple[str, str], ...] = ()
    children: tuple[CommandInfo, ...] = ()

    @property
    def argument(self) -> str | None:
        """The metavar that says what completes the words: of several the last, which the others are like.

        What stands after a "=" is the user's own.
        """
        return next((name for name, _ in reversed(self.arguments) if "=" not in name), None)


def commands() -> tuple[CommandInfo, ...]:
    """Every command, in the order of the help text; groups with their commands as children."""
    infos = [_command(entry.words, callback(entry)) for entry in ENTRIES]
    first_words = dict.fromkeys(entry.words[0] for entry in ENTRIES)
    return tuple(_gathered(word, [info for info in infos if info.words[0] == word]) for word in first_words)


def _gathered(word: str, infos: list[CommandInfo]) -> CommandInfo:
    own = next(
        (info for info in infos if len(info.words) == 1),
        CommandInfo(words=(word,), help=GROUPS.get(word, "")),
    )
    return replace(own, children=tuple(info for info in infos if len(info.words) > 1))


def _command(words: tuple[str, ...], function: Any) -> CommandInfo:
    options: list[OptionInfo] = []
    arguments: list[tuple[str, str]] = []
    for parameter in inspect.signature(function, eval_str=True).parameters.values():
        declared = _declared(parameter)
        if declared is None:
            continue
        if "ArgumentInfo" in type(declared).__name__:
            optional = parameter.default is not inspect.Parameter.empty
            name = str(declared.metavar or parameter.name.upper())
            arguments.append((f"[{name}]" if optional else name, str(declared.help or "")))
        else:
            options.append(_option(parameter, declared))
    text = inspect.cleandoc(function.__doc__ or "")
    return CommandInfo(
        words=words,
        help=text.split("\n", 1)[0],
        text=text,
        options=tuple(options),
        arguments=tuple(arguments),
    )


def _declared(parameter: inspect.Parameter) -> Any | None:
    if get_origin(parameter.annotation) is Annotated:
        return next((a for a in get_args(parameter.annotation)[1:] if hasattr(a, "param_decls")), None)
    return None


def _option(parameter: inspect.Parameter, declared: Any) -> OptionInfo:
    # In an Annotated declaration Typer keeps the first name where the default would be.
    first = (
        (declared.default,) if isinstance(declared.default, str) and declared.default.startswith("-") else ()
    )
    declarations = (*first, *(declared.param_decls or ())) or (f"--{parameter.name.replace('_', '-')}",)
    names = tuple(name for pair in declarations for name in pair.split("/"))  # a switch and its opposite
    kind = get_args(parameter.annotation)[0]
    metavar = None if kind is bool or bool in get_args(kind) else str(declared.metavar or "VALUE")
    return OptionInfo(
        names=names,
        metavar=metavar,
        help=str(declared.help or ""),
        panel=str(declared.rich_help_panel or "Options"),
    )
