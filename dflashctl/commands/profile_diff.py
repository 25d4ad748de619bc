"""`profile diff`: two profiles side by side, or a profile against the server that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.live_server import api_key, live_server
from dflashctl.commands.planned import planned
from dflashctl.core.errors import Unavailable
from dflashctl.core.json_text import json_loads
from dflashctl.core.options import PlanRequest
from dflashctl.core.profile import EngineName
from dflashctl.core.profile_diff import between, with_running
from dflashctl.core.report import Report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.env import Env

_COMMAND = "profile diff"
_OK = 200


def profile_diff(env: Env, left: str, right: str) -> Report:
    """The fields in which the profiles `left` and `right` differ."""
    profiles = [env.profiles.load(name).profile for name in (left, right)]
    return Report(command=_COMMAND, data=between(*profiles))


def profile_diff_running(
    env: Env,
    profile: str,
    *,
    name: str | None = None,
    url: str | None = None,
    key_variable: str | None = None,
) -> Report:
    """The profile's arguments against /server_info of the instance `name` (default the profile's name) or of `url`."""
    server = live_server(env, None if url is not None else name or profile, url)
    info = _server_info(env, server.url, api_key(env, key_variable))
    version = info.get("version")
    on_sglang = env.profiles.load(profile).profile.engine.name is EngineName.SGLANG
    request = PlanRequest(
        profile=profile,
        dry_run=True,
        engine_version=version if on_sglang and isinstance(version, str) else None,
    )
    plan = planned(env, request).plan
    return Report(command=_COMMAND, data=with_running(profile, plan.arguments, info))


def _server_info(env: Env, url: str, key: str | None) -> Mapping[str, object]:
    headers = {"Authorization": f"Bearer {key}"} if key else None
    reply = env.web.request("GET", f"{url}/server_info", headers=headers)
    if reply.status != _OK:
        raise Unavailable(
            f"{url}/server_info does not answer: {reply.problem or f'HTTP {reply.status}'}",
            hint="dflashctl status",
        )
    try:
        found = json_loads(reply.body)
    except ValueError as error:
        raise Unavailable(f"{url}/server_info is not JSON", hint="dflashctl status") from error
    return found if isinstance(found, dict) else {}
