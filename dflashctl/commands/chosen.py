"""Which instance a command means when it is called with or without a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import UsageProblem
from dflashctl.core.instance import check_name

if TYPE_CHECKING:
    from dflashctl.env import Env


def chosen(env: Env, name: str | None) -> str | None:
    """`name`, else the only instance that runs, else the only one known; None when there is none to mean."""
    if name is not None:
        return check_name(name)
    names = env.instances.names()
    running = tuple(n for n in names if env.instances.read(n).supervised)
    candidates = running or names
    if len(candidates) > 1:
        kind = "run" if running else "are known"
        raise UsageProblem(f"several instances {kind}: {', '.join(candidates)}", hint="name one of them")
    return candidates[0] if candidates else None
