"""up, down, status, logs, diagnose: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o
from dflashctl.cli.plan_options import plan_options
from dflashctl.core.options import PlanRequest


@plan_options()
def up(
    ctx: typer.Context,
    plan: PlanRequest,
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return once ready; the supervisor stays.")
    ] = False,
    show_log: Annotated[
        bool,
        typer.Option("--show-log", help="Show the server's own log as well, as PID 1 of a container does."),
    ] = False,
) -> object:
    """Fetch, check, plan, start and prove a server; stay in front and supervise it.

    Words after `--` go to the engine as they are; they win, and are still checked.

    Example: dflashctl up tiny-cpu

    Example: dflashctl up kimi-k3-b300 --block-size 16 --dry-run
    """
    from dflashctl.commands.up import up as run

    return run(ctx.obj.env, plan, detach=detach, show_log=show_log)


def down(ctx: typer.Context, name: o.InstanceArgument = None, *, json: o.Json = False) -> object:
    """Stop a server; done only when its processes are gone, its port is free and its GPU memory is back.

    Example: dflashctl down tiny-cpu
    """
    from dflashctl.commands.down import down as run

    return run(ctx.obj.env, name)


def status(
    ctx: typer.Context,
    name: o.InstanceArgument = None,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="A live view, until Ctrl-C.")] = False,
    json: o.Json = False,
) -> object:
    """Show what runs: phase, since when, restarts, plan drift, live figures.

    Example: dflashctl status --watch
    """
    from dflashctl.commands.status import status as run
    from dflashctl.commands.status import watch as run_watch

    return run_watch(ctx.obj.env, name) if watch else run(ctx.obj.env, name)


def logs(
    ctx: typer.Context,
    name: o.InstanceArgument = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on printing new lines.")] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", help="So many of the last lines.", min=0)
    ] = 100,
    phase: Annotated[
        str | None, typer.Option("--phase", metavar="PHASE", help="Only the lines of that phase.")
    ] = None,
    json: o.Json = False,
) -> object:
    """Print a server's log.

    Example: dflashctl logs tiny-cpu -f
    """
    from dflashctl.commands.logs import logs as run

    return run(ctx.obj.env, name, follow=follow, lines=lines, phase=phase)


def diagnose(
    ctx: typer.Context,
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME|FILE|-",
            help="An instance, a log file, or - for standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    json: o.Json = False,
) -> object:
    """Explain a log: the first cause, the lines that show it, and the fix.

    Example: dflashctl diagnose server.log
    """
    from dflashctl.commands.diagnose import diagnose as run

    return run(ctx.obj.env, what)
