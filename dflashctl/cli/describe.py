"""The commands and options of the Typer app as plain data, for the stored help and the completions.

Uses only what Typer's public objects carry: the callbacks' signatures and the declared options.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

import typer

from dflashctl.cli.app import ENTRIES, build


@dataclass(frozen=True, kw_only=True)
class OptionInfo:
    """`names` as typed, `metavar` None for a switch."""

    names: tuple[str, ...]
    metavar: str | None
    help: str


@dataclass(frozen=True, kw_only=True)
class CommandInfo:
    """`words` are the command's words; `argument` is the metavar of its positional argument."""

    words: tuple[str, ...]
    help: str
    options: tuple[OptionInfo, ...] = ()
    argument: str | None = None
    children: tuple[CommandInfo, ...] = ()


def commands() -> tuple[CommandInfo, ...]:
    """Every command, in the order of the help text."""
    app = build()
    plain = {c.name: c.callback for c in app.registered_commands}
    groups = {g.name: g.typer_instance for g in app.registered_groups}
    return tuple(
        _group(entry.name, groups[entry.name]) if entry.group else _command((entry.name,), plain[entry.name])
        for entry in ENTRIES
    )


def _group(name: str, group: typer.Typer | None) -> CommandInfo:
    assert group is not None
    children = tuple(
        _command((name, c.name or _dashed(c.callback)), c.callback) for c in group.registered_commands
    )
    own = group.registered_callback.callback if group.registered_callback else None
    described = _command((name,), own) if own else CommandInfo(words=(name,), help=str(group.info.help or ""))
    return CommandInfo(
        words=described.words,
        help=described.help,
        options=described.options,
        argument=described.argument,
        children=children,
    )


def _dashed(callback: Any) -> str:
    return str(callback.__name__).replace("_", "-")


def _command(words: tuple[str, ...], callback: Any) -> CommandInfo:
    options: list[OptionInfo] = []
    argument = None
    for parameter in inspect.signature(callback, eval_str=True).parameters.values():
        declared = _declared(parameter)
        if declared is None:
            continue
        if "ArgumentInfo" in type(declared).__name__:
            argument = str(declared.metavar or parameter.name.upper())
        else:
            options.append(_option(parameter, declared))
    return CommandInfo(words=words, help=_first_line(callback.__doc__), options=tuple(options), argument=argument)


def _declared(parameter: inspect.Parameter) -> Any | None:
    if get_origin(parameter.annotation) is Annotated:
        return next((a for a in get_args(parameter.annotation)[1:] if hasattr(a, "param_decls")), None)
    return parameter.default if hasattr(parameter.default, "param_decls") else None


def _option(parameter: inspect.Parameter, declared: Any) -> OptionInfo:
    names = tuple(declared.param_decls or (f"--{parameter.name.replace('_', '-')}",))
    kind = get_args(parameter.annotation)[0] if get_args(parameter.annotation) else parameter.annotation
    metavar = None if kind is bool else str(declared.metavar or "VALUE")
    return OptionInfo(names=names, metavar=metavar, help=str(declared.help or ""))


def _first_line(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n", 1)[0]
