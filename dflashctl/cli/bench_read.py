"""bench compare and bench report: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o


def bench_compare(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A result file.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    *,
    allow_unlike: Annotated[
        bool, typer.Option("--allow-unlike", help="Compare runs of unlike settings all the same.")
    ] = False,
    max_regression: Annotated[
        float | None,
        typer.Option("--max-regression", metavar="SHARE", help="Exit 1 when B is worse by more: 0.05."),
    ] = None,
    json: o.Json = False,
) -> object:
    """Compare two results, with intervals; unlike settings are refused or marked.

    Example: dflashctl bench compare before.json after.json
    """
    from dflashctl.commands.bench_compare import bench_compare as run

    return run(ctx.obj.env, a, b, allow_unlike=allow_unlike, max_regression=max_regression)


def bench_report(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="RUN...", help="Result files.")],
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Default: dflashctl-report.html.")
    ] = None,
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="The charts as a picture, too.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The heading.")] = None,
    json: o.Json = False,
) -> object:
    """Make one self-contained HTML page with charts of results.

    Example: dflashctl bench report run.json -o report.html
    """
    from dflashctl.commands.bench_report import bench_report as run

    return run(ctx.obj.env, tuple(files), output=output, png=png, title=title)
