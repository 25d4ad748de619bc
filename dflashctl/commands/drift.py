"""Drift: the fingerprint of the plan that would be made now for an instance that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.report import to_json
from dflashctl.core.started_from import FILE, StartedFrom, digest_of, dump, parse, request_of

if TYPE_CHECKING:
    from dflashctl.commands.planned import Planned
    from dflashctl.core.options import PlanRequest
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance

_CHANGED = "changed"


def remember(env: Env, request: PlanRequest, made: Planned, owned: OwnedInstance) -> None:
    """Write down what the instance is started from."""
    path = str(made.loaded.file.path.absolute())
    started = StartedFrom(
        request=to_json(request),
        profile_path=path,
        digest=digest_of(env.read_bytes(path) or b""),
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
    content = env.read_bytes(started.profile_path)
    if content is None:
        return _CHANGED
    return started.fingerprint if digest_of(content) == started.digest else _again(env, started)


def _again(env: Env, started: StartedFrom) -> str:
    from dflashctl.commands.planned import planned

    try:
        return planned(env, request_of(started)).plan.fingerprint
    except (DflashError, ValueError):
        return _CHANGED
