"""`@plan_options`: the options that make a PlanRequest, given to every command that needs one."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dflashctl.cli import options as o
from dflashctl.core.errors import UsageProblem
from dflashctl.core.options import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Callable

# Parameter, its declaration, its default; the order is that of the help text.
_OPTIONS: tuple[tuple[str, object, object], ...] = (
    ("sets", o.Set, None),
    ("block_size", o.BlockSize, None),
    ("window_size", o.WindowSize, None),
    ("gpus", o.Gpus, None),
    ("host", o.Host, None),
    ("port", o.Port, None),
    ("engine_version", o.EngineVersion, None),
    ("python", o.Python, None),
    ("name", o.Name, None),
    ("runtime", o.Runtime, "process"),
    ("image", o.Image, None),
    ("offline", o.Offline, False),
    ("dry_run", o.DryRun, False),
    ("machine", o.MachineFile, None),
    ("skip_doctor", o.SkipDoctor, False),
    ("skip_fetch", o.SkipFetch, False),
)
_RUNTIMES = ("process", "docker")


def _idle(parameter: str) -> object:
    """The option as a command takes it that starts nothing: accepted, so that one line of options serves everywhere."""
    text = "As for `up`; nothing is started here, so it changes nothing."
    name = f"--{parameter.replace('_', '-')}"
    return Annotated[bool, typer.Option(name, help=text, rich_help_panel=o.PLAN)]


def plan_options(
    *, idle: tuple[str, ...] = (), required: bool = True
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """A decorator: the command gets `plan: PlanRequest` (its profile is empty when none is named and none is `required`).

    `idle` names switches that have no effect on the command, which its help says.
    """

    def decorate(command: Callable[..., object]) -> Callable[..., object]:
        own = inspect.signature(command, eval_str=True)
        shared = [(name, _idle(name) if name in idle else kind, usual) for name, kind, usual in _OPTIONS]

        @functools.wraps(command)
        def wrapper(ctx: typer.Context, **given: Any) -> object:
            values = {name: given.pop(name) for name, _, _ in shared}
            given.pop("json")  # the screen knows it already
            profile = one_profile(given.pop("profile"), given.pop("profile_option"), required=required)
            return command(ctx=ctx, plan=_request(profile, values, ctx.obj.raw_args), **given)

        wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                _parameter("ctx", typer.Context),
                _parameter("profile", o.ProfileArgument, default=None),
                _parameter("profile_option", o.ProfileOption, default=None),
                *[p for name, p in own.parameters.items() if name not in ("ctx", "plan")],
                *[_parameter(name, declared, default=default) for name, declared, default in shared],
                _parameter("json", o.Json, default=False),
            ]
        )
        return wrapper

    return decorate


def _parameter(name: str, annotation: object, **default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, **default)


def one_profile(argument: str | None, option: str | None, *, required: bool = True) -> str | None:
    if argument and option and argument != option:
        raise UsageProblem(
            f"two profiles are named: {argument!r} and {option!r}", hint="dflashctl profile list"
        )
    if required and not (argument or option):
        raise UsageProblem("which profile?", hint="dflashctl profile list")
    return argument or option


def _request(profile: str | None, values: dict[str, Any], raw_args: tuple[str, ...]) -> PlanRequest:
    runtime = values.get("runtime", "process")
    if runtime not in _RUNTIMES:
        raise UsageProblem(
            f"--runtime {runtime!r} is not one of {' and '.join(_RUNTIMES)}", hint="--runtime process"
        )
    sets = tuple(values.pop("sets", None) or ())
    return PlanRequest(profile=profile or "", sets=sets, raw_args=raw_args, **values)
