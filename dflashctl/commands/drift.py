"""Drift: the fingerprint of the plan that would be made now for an instance that runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.started_from import FILE, StartedFrom, digest_of, dump, parse

if TYPE_CHECKING:
    from dflashctl.commands.planned import Planned
    from dflashctl.core.options import PlanRequest
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance

_CHANGED = "changed"


def remember(env: Env, request: PlanRequest, made: Planned, owned: OwnedInstance) -> None:
    """Write down what the instance is started from."""
    file = made.loaded.file
    started = StartedFrom(
        request=request,
        profile_path=str(file.path.absolute()),
        digest=digest_of(env.profiles.read_text(file)),
        fingerprint=made.plan.fingerprint,
    )
    owned.write(FILE, dump(started))


def fingerprint_now(env: Env, name: str) -> str | None:
    """None when nothing is known of the start; a word that equals no fingerprint when no plan can be made now.

    The plan is only made again when the profile's text is another one, so that asking costs a file and a hash.
    """
    started = parse(env.instances.read_text(name, FILE) or "")
    if started is None:
        return None
    try:
        text = env.profiles.read_text(env.profiles.find(started.profile_path))
        if digest_of(text) == started.digest:
            return started.fingerprint
        return _again(env, started)
    except DflashError:
        return _CHANGED


def _again(env: Env, started: StartedFrom) -> str:
    from dflashctl.commands.planned import planned

    return planned(env, replace(started.request, profile=started.profile_path)).plan.fingerprint
