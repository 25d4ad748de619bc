"""smoke: signature and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o


def smoke(
    ctx: typer.Context,
    name: o.InstanceArgument = None,
    *,
    url: o.Url = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the proofs that `up` makes.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="PROOF", help="Only that proof; repeatable.")
    ] = None,
    against_no_spec: Annotated[
        bool,
        typer.Option("--against-no-spec", help="Start a second server without speculation as reference."),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="URL", help="A server without speculation as reference."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="FILE", help="A saved run as reference.")
    ] = None,
    save_reference: Annotated[
        str | None,
        typer.Option("--save-reference", metavar="FILE", help="Save this server's texts as a reference."),
    ] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            "-p",
            metavar="PROFILE",
            help="The profile whose model must be served, and what --against-no-spec starts.",
        ),
    ] = None,
    near_tie: Annotated[
        float | None,
        typer.Option(
            "--near-tie", metavar="NATS", help="Log-probability margin below which a difference is noise."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Limit of one request.")
    ] = 120.0,
    api_key_env: o.ApiKeyEnv = None,
    json: o.Json = False,
) -> object:
    """Prove that a live server works, that it really speculates, and that its text is the target's own.

    Example: dflashctl smoke tiny-cpu

    Example: dflashctl smoke --url http://127.0.0.1:30000 --only lossless
    """
    from dflashctl.commands.smoke import smoke as run
    from dflashctl.core.smoke import SmokeOptions

    return run(
        ctx.obj.env,
        SmokeOptions(
            name=name,
            url=url,
            only=tuple(only or ()),
            quick=quick,
            against_no_spec=against_no_spec,
            against=against,
            reference=reference,
            save_reference=save_reference,
            profile=profile,
            near_tie_nats=near_tie,
            timeout_s=timeout,
            api_key_env=api_key_env,
        ),
    )
