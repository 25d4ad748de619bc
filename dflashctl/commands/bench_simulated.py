"""Simulated acceptance refused: no benchmark of a server that is known to make its accept lengths up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import CheckFailed
from dflashctl.core.simulated import VARIABLE, simulated_by

if TYPE_CHECKING:
    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.plan import Plan
    from dflashctl.env import Env


def refuse_here(env: Env) -> None:
    """CheckFailed when the variable is set where the benchmark runs: a server of its own would inherit it."""
    if simulated_by(env.environ) is not None:
        raise CheckFailed(
            f"{VARIABLE} is set, so accept lengths would be made up",
            hint=f"unset {VARIABLE} and restart the server",
        )


def refuse_planned(plan: Plan) -> None:
    """CheckFailed when the plan sets it for the server."""
    value = simulated_by(dict(plan.env)) if plan.speculation else None
    if value is not None:
        raise CheckFailed(
            f"the plan of {plan.profile!r} sets {VARIABLE}={value}, so accept lengths would be made up",
            hint=f"take {VARIABLE} out of the environment of the profile and of --set and --sweep",
        )


def refuse_running(server: LiveServer) -> None:
    """CheckFailed when a running instance was started with it; of a server that is not ours nothing is known here."""
    served = server.served
    if served is not None and served.simulated_accept is not None:
        raise CheckFailed(
            f"instance {server.name!r} was started with {VARIABLE}={served.simulated_accept}, so its accept lengths "
            "are made up",
            hint=f"dflashctl down {server.name}, then start it without {VARIABLE}",
        )
