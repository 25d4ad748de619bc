"""profile list, show, validate and the rest: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o
from dflashctl.cli.plan_options import plan_options
from dflashctl.core.errors import UsageProblem
from dflashctl.core.options import PlanRequest

NameArgument = Annotated[
    str, typer.Argument(metavar="PROFILE", help="A profile's name, or the path of its file.")
]


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


@plan_options(idle=("offline", "dry_run", "skip_doctor", "skip_fetch"), required=False)
def explain(
    ctx: typer.Context,
    plan: PlanRequest,
    *,
    all_versions: Annotated[
        bool, typer.Option("--all-versions", help="Profiles against every known release, as a matrix.")
    ] = False,
) -> object:
    """Say for each engine argument where it comes from, and what was translated, added or dropped.

    Example: dflashctl profile explain kimi-k3-b300 --engine-version 0.5.22

    Example: dflashctl profile explain --all-versions
    """
    from dflashctl.commands.profile_explain import profile_explain, profile_matrix

    if all_versions:
        return profile_matrix(ctx.obj.env, plan if plan.profile else None)
    if not plan.profile:
        raise UsageProblem("which profile?", hint="dflashctl profile explain --all-versions   shows them all")
    return profile_explain(ctx.obj.env, plan)


def diff(
    ctx: typer.Context,
    profiles: Annotated[
        list[str], typer.Argument(metavar="PROFILE...", help="Two profiles; one with --running.")
    ],
    *,
    running: Annotated[bool, typer.Option("--running", help="Compare with the server that runs.")] = False,
    name: o.Name = None,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Any server, instead of an instance.")
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option("--api-key-env", metavar="VAR", help="The variable that holds the server's key."),
    ] = None,
    json: o.Json = False,
) -> object:
    """Show in which fields two profiles differ, or a profile and the server that runs.

    Example: dflashctl profile diff kimi-k3-b300 kimi-k3-b300-peak

    Example: dflashctl profile diff tiny-cpu --running
    """
    from dflashctl.commands.profile_diff import profile_diff, profile_diff_running

    wanted = 1 if running or url is not None else 2
    if len(profiles) != wanted:
        raise UsageProblem(
            f"{wanted} profile{'s' if wanted > 1 else ''} to compare, not {len(profiles)}",
            hint="dflashctl profile diff --help",
        )
    if wanted == 1:
        return profile_diff_running(ctx.obj.env, profiles[0], name=name, url=url, key_variable=api_key_env)
    return profile_diff(ctx.obj.env, profiles[0], profiles[1])


def new(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NEW", help="The name of the new profile.")],
    *,
    from_command: Annotated[
        str,
        typer.Option(
            "--from-command",
            metavar="TEXT|FILE|-",
            help="A launch command: the text, a file, or - for standard input.",
        ),
    ],
    engine_version: o.EngineVersion = None,
    offline: o.Offline = False,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write it there instead of printing it."),
    ] = None,
    json: o.Json = False,
) -> object:
    """Make a profile of a published launch command; nothing of it is executed.

    Example: dflashctl profile new mine --from-command - < command.txt > mine.yaml
    """
    from dflashctl.commands.profile_new import profile_new_from

    return profile_new_from(
        ctx.obj.env,
        name=name,
        source=from_command,
        engine_version=engine_version,
        offline=offline,
        output=output,
    )
