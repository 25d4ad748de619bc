"""doctor and fetch: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o
from dflashctl.cli.plan_options import plan_options
from dflashctl.core.options import PlanRequest


@plan_options(idle=("dry_run", "skip_doctor", "skip_fetch"), required=False)
def doctor(
    ctx: typer.Context,
    plan: PlanRequest,
    *,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also what costs seconds: CUDA, copies, disk speed.")
    ] = False,
    save_machine: Annotated[
        str | None,
        typer.Option("--save-machine", metavar="FILE", help="Save this machine, without serial numbers."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Clocks, power, throttling and memory, until Ctrl-C.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what passed as well.")] = False,
) -> object:
    """Check this machine, and whether it can carry a profile.

    Example: dflashctl doctor --profile kimi-k3-b300

    Example: dflashctl doctor --machine saved.yaml --profile kimi-k2.5-b200
    """
    from dflashctl.commands.doctor import DoctorOptions
    from dflashctl.commands.doctor import doctor as run

    return run(
        ctx.obj.env,
        DoctorOptions(plan=plan, deep=deep, save_machine=save_machine, watch=watch, verbose=verbose),
    )


def fetch(
    ctx: typer.Context,
    profile: o.ProfileArgument = None,
    profile_option: o.ProfileOption = None,
    *,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be fetched, and fetch nothing.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read every byte and compare it with the lock.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Set bad files aside and fetch only those.")
    ] = False,
    offline: o.Offline = False,
    files: Annotated[bool, typer.Option("--files", help="Show each file on its own.")] = False,
    accept_code: Annotated[
        bool,
        typer.Option("--accept-code", help="Agree to Python files of a model that changed since the lock."),
    ] = False,
    token_fd: Annotated[
        int | None,
        typer.Option("--token-fd", metavar="FD", help="Read the hub token from this open descriptor."),
    ] = None,
    send_token_to: Annotated[
        str | None,
        typer.Option("--send-token-to", metavar="HOST", help="Also send the token to this HF_ENDPOINT."),
    ] = None,
    set_: o.Set = None,
    json: o.Json = False,
) -> object:
    """Fetch target and draft at their pinned commits, planned and verified.

    Example: dflashctl fetch kimi-k2.5-b200 --plan
    """
    from dflashctl.cli.plan_options import one_profile
    from dflashctl.commands.fetch import fetch as run
    from dflashctl.core.fetch_options import FetchOptions
    from dflashctl.core.options import overrides

    options = FetchOptions(
        profile=one_profile(profile, profile_option) or "",
        plan=plan,
        verify=verify,
        repair=repair,
        offline=offline,
        files=files,
        accept_code=accept_code,
        token_fd=token_fd,
        send_token_to=send_token_to,
        overrides=overrides(tuple(set_ or ())),
    )
    return run(ctx.obj.env, options)
