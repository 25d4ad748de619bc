"""The profile of an instance: by name where that still means the same file, else the file itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.started_from import FILE, parse

if TYPE_CHECKING:
    from dflashctl.commands.live_server import LiveServer
    from dflashctl.env import Env


def server_profile(env: Env, server: LiveServer) -> str | None:
    """As `instance_profile`, None for a server that is no instance of ours."""
    if server.name is None or server.served is None:
        return None
    return instance_profile(env, server.name, server.served.profile)


def instance_profile(env: Env, instance: str, profile: str) -> str:
    """What loads the profile named `profile` that `instance` was started from: its name or an absolute path."""
    started = parse(env.instances.read_text(instance, FILE) or "")
    if started is None:
        return profile
    try:
        same = str(env.profiles.find(profile).path.absolute()) == started.profile_path
    except DflashError:
        same = False
    return profile if same else started.profile_path
