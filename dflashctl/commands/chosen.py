"""Which instance a command means when it is called with or without a name."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.instance import check_name

if TYPE_CHECKING:
    from dflashctl.core.instance import Snapshot
    from dflashctl.env import Env


def chosen(env: Env, name: str | None) -> str | None:
    """`name`, else the only instance that runs, else the only one known; None when there is none to mean."""
    if name is not None:
        return check_name(name, new=False)
    names = env.instances.names()
    running = tuple(snapshot.name for snapshot in readable(env) if snapshot.supervised)
    candidates = running or names
    if len(candidates) > 1:
        kind = "run" if running else "are known"
        raise UsageProblem(f"several instances {kind}: {', '.join(candidates)}", hint="name one of them")
    return candidates[0] if candidates else None


def readable(env: Env) -> tuple[Snapshot, ...]:
    """All that is known here, but for what cannot be read: it must not keep the others from being used."""
    found = []
    for name in env.instances.names():
        with suppress(StateError):
            found.append(env.instances.read(name))
    return tuple(found)
