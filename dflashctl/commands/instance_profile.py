"""The profile of an instance that runs: by name where that still means the same file, else the file itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.started_from import FILE, parse

if TYPE_CHECKING:
    from dflashctl.commands.live_server import LiveServer
    from dflashctl.env import Env


def instance_profile(env: Env, server: LiveServer) -> str | None:
    """A name or an absolute path that loads the profile; None for a server that is no instance of ours."""
    if server.served is None or server.name is None:
        return None
    name = server.served.profile
    started = parse(env.instances.read_text(server.name, FILE) or "")
    if started is None:
        return name
    try:
        same = str(env.profiles.find(name).path.absolute()) == started.profile_path
    except DflashError:
        same = False
    return name if same else started.profile_path
