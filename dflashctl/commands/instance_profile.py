"""The profile of an instance: by name where that still means the same file, else the file itself."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.decode import DecodeError
from dflashctl.core.errors import DflashError, NotRunning
from dflashctl.core.options import PlanRequest
from dflashctl.core.started_from import FILE, parse, request_of

if TYPE_CHECKING:
    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.started_from import StartedFrom
    from dflashctl.env import Env


def server_profile(env: Env, server: LiveServer) -> str | None:
    """As `instance_profile`, None for a server that is no instance of ours."""
    if server.name is None or server.served is None:
        return None
    return instance_profile(env, server.name, server.served.profile)


def instance_profile(env: Env, instance: str, profile: str) -> str:
    """What loads the profile named `profile` that `instance` was started from: its name or an absolute path."""
    started = _started(env, instance)
    if started is None:
        return profile
    try:
        same = str(env.profiles.find(profile).path.absolute()) == started.profile_path
    except DflashError:
        same = False
    return profile if same else started.profile_path


def nobody(name: str) -> NotRunning:
    """What is to be said of a name without a `start_line`."""
    return NotRunning(
        f"there is no instance and no profile {name!r}", hint="dflashctl status, or dflashctl profile list"
    )


def start_line(env: Env, name: str, command: str = "up") -> str | None:
    """The command that starts the instance `name` again as it was; None for a name of no instance and no profile."""
    record = env.instances.read(name).record
    profile = record.served.profile if record is not None and record.served is not None else name
    known = instance_profile(env, name, profile)
    if record is None and _started(env, name) is None and not _is_profile(env, name):
        return None
    plain = PlanRequest(profile=known, name=None if name == profile else name)
    asked = replace(_asked(env, name, plain), profile=known)
    return asked.line(command, without=("dry_run", "machine"))


def _started(env: Env, name: str) -> StartedFrom | None:
    return parse(env.instances.read_text(name, FILE) or "")


def _asked(env: Env, name: str, otherwise: PlanRequest) -> PlanRequest:
    """What `up` was told for that instance; `otherwise` where that is not known, or written as it is not known here."""
    started = _started(env, name)
    try:
        return request_of(started) if started is not None else otherwise
    except DecodeError:
        return otherwise


def _is_profile(env: Env, name: str) -> bool:
    try:
        env.profiles.find(name)
    except DflashError:
        return False
    return True


def same_server(env: Env, server: LiveServer, profile: str | None) -> PlanRequest | None:
    """What starts another server like `server`: with all that `up` was told for it, except its name and its port.

    A profile that is named says all by itself, unless it is the instance's own. None when nobody knows a profile.
    """
    own = server_profile(env, server)
    if own is None or server.name is None or (profile is not None and not same_file(env, own, profile)):
        return None if profile is None else PlanRequest(profile=profile)
    asked = _asked(env, server.name, PlanRequest(profile=own))
    return replace(asked, profile=own, name=None, port=None, dry_run=False)


def same_file(env: Env, one: str, other: str) -> bool:
    """Whether both load the same profile; False when one of them cannot be found."""
    try:
        return env.profiles.find(one).path.absolute() == env.profiles.find(other).path.absolute()
    except DflashError:
        return False
