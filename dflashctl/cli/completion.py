"""completion: signature and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o


def completion(
    ctx: typer.Context,
    shell: Annotated[
        str | None,
        typer.Argument(metavar="bash|zsh|fish", help="Default: the shell in $SHELL.", show_default=False),
    ] = None,
    *,
    install: Annotated[bool, typer.Option("--install", help="Write it where the shell finds it.")] = False,
    json: o.Json = False,
) -> object:
    """Print or install the completion of your shell.

    Example: dflashctl completion bash --install
    """
    from dflashctl.commands.completion import completion as run

    return run(ctx.obj.env, shell, install=install)
