"""doctor and fetch: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o
from dflashctl.cli.plan_options import plan_options
from dflashctl.core.options import PlanRequest


@plan_options(without=("dry_run", "skip_doctor", "skip_fetch"), required=False)
def doctor(
    ctx: typer.Context,
    plan: PlanRequest | None,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also what costs seconds: CUDA, copies, disk speed.")] = False,
    save_machine: Annotated[str | None, typer.Option("--save-machine", metavar="FILE", help="Save this machine, without serial numbers.")] = None,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Clocks, power, throttling and memory, until Ctrl-C.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show what passed as well.")] = False,
) -> object:
    """Check this machine, and whether it can carry a profile.

    Example: dflashctl doctor --profile kimi-k3-b300

    Example: dflashctl doctor --machine saved.yaml --profile kimi-k2.5-b200
    """
    from dflashctl.commands.doctor import DoctorOptions
    from dflashctl.commands.doctor import doctor as run

    return run(ctx.obj.env, DoctorOptions(plan=plan, deep=deep, save_machine=save_machine, watch=watch))


def fetch(
    ctx: typer.Context,
    profile: o.ProfileArgument = None,
    profile_option: o.ProfileOption = None,
    *,
    plan: Annotated[bool, typer.Option("--plan", help="Show what would be fetched, and fetch nothing.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte and compare it with the lock.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Set bad files aside and fetch only those.")] = False,
    offline: o.Offline = False,
    json: o.Json = False,
) -> object:
    """Fetch target and draft at their pinned commits, planned and verified.

    Example: dflashctl fetch kimi-k2.5-b200 --plan
    """
    from dflashctl.cli.plan_options import one_profile
    from dflashctl.commands.fetch import FetchOptions
    from dflashctl.commands.fetch import fetch as run

    name = one_profile(profile, profile_option)
    return run(ctx.obj.env, FetchOptions(profile=name, plan=plan, verify=verify, repair=repair, offline=offline))
