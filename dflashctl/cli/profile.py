"""profile list, show, validate and the rest: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o

NameArgument = Annotated[str, typer.Argument(metavar="PROFILE", help="A profile's name, or the path of its file.")]


def list_(ctx: typer.Context, *, json: o.Json = False) -> object:
    """List the profiles.

    Example: dflashctl profile list
    """
    from dflashctl.commands.profile_list import profile_list

    return profile_list(ctx.obj.env)


def show(ctx: typer.Context, profile: NameArgument, *, json: o.Json = False) -> object:
    """Print a profile; `reference` is the commented schema.

    Example: dflashctl profile show reference
    """
    from dflashctl.commands.profile_show import profile_show

    return profile_show(ctx.obj.env, profile)


def validate(
    ctx: typer.Context,
    profiles: Annotated[list[str], typer.Argument(metavar="PROFILE...", help="Names or files.")],
    *,
    json: o.Json = False,
) -> object:
    """Check that profiles are valid; every problem is told with file and line.

    Example: dflashctl profile validate my.yaml
    """
    from dflashctl.commands.profile_show import profile_validate

    return profile_validate(ctx.obj.env, tuple(profiles))


def schema(ctx: typer.Context, *, json: o.Json = False) -> object:
    """Print the JSON Schema of a profile, for editors.

    Example: dflashctl profile schema > profile.schema.json
    """
    from dflashctl.commands.profile_show import profile_schema_report

    return profile_schema_report()
