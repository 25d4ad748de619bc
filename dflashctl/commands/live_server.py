"""Which server a command talks to: a running instance by name, the only one, or any URL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dflashctl.commands.chosen import readable
from dflashctl.commands.full_disk import full_disk
from dflashctl.commands.instance_profile import nobody, start_line
from dflashctl.core.errors import NotRunning, UsageProblem
from dflashctl.core.exposure import KEY_VARIABLE
from dflashctl.core.instance import Phase, Served, check_name

if TYPE_CHECKING:
    from dflashctl.core.instance import Snapshot
    from dflashctl.env import Env

SERVING = (Phase.READY, Phase.UNHEALTHY)


@dataclass(frozen=True, kw_only=True)
class LiveServer:
    """`served` and `name` are None for a server that is not ours."""

    url: str
    name: str | None = None
    served: Served | None = None


def live_server(env: Env, name: str | None, url: str | None) -> LiveServer:
    """The server meant by NAME or --url; without either, the only instance that runs. NotRunning (exit 3) if none."""
    if url is not None:
        if name is not None:
            raise UsageProblem(
                f"both an instance ({name!r}) and --url were given", hint="leave one of them out"
            )
        return LiveServer(url=_checked(url))
    snapshot = env.instances.read(check_name(name, new=False)) if name is not None else _only(env)
    record = snapshot.record
    if not snapshot.supervised:
        raise _not_running(env, snapshot.name)
    if record is None or record.served is None or record.phase not in SERVING:
        phase = record.phase if record is not None else Phase.PREFLIGHT
        full = "".join(f"; {finding.summary}" for finding in full_disk(env))
        raise NotRunning(
            f"instance {snapshot.name!r} is not ready: {phase.value}{full}",
            hint=f"dflashctl status {snapshot.name}",
        )
    return LiveServer(url=record.served.url, name=snapshot.name, served=record.served)


def api_key(env: Env, variable: str | None) -> str | None:
    """The key from `variable`, else the one that servers are started with; UsageProblem when `variable` is not set."""
    if variable is None:
        return env.api_key()
    key = env.environ.get(variable) or None
    if key is None:
        raise UsageProblem(
            f"the environment variable {variable!r} holds no API key", hint=f"export {variable}=…"
        )
    return key


def _not_running(env: Env, name: str) -> NotRunning:
    again = start_line(env, name, "up --detach")
    return nobody(name) if again is None else NotRunning(f"instance {name!r} is not running", hint=again)


def _only(env: Env) -> Snapshot:
    running = [snapshot for snapshot in readable(env) if snapshot.supervised]
    if not running:
        raise NotRunning("no instance is running", hint="dflashctl up PROFILE --detach, or --url URL")
    if len(running) > 1:
        names = ", ".join(snapshot.name for snapshot in running)
        raise UsageProblem(f"several instances are running: {names}", hint="name one of them")
    return running[0]


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:  # a bracket that is not closed, a port that is none
        raise UsageProblem(
            f"{url!r} is not an http address: {error}", hint="--url http://HOST:PORT"
        ) from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise UsageProblem(f"{url!r} is not an http address", hint="--url http://HOST:PORT")
    if parts.username or parts.password:
        raise UsageProblem("the URL holds a password", hint=f"put the key into {KEY_VARIABLE}")
    return url.rstrip("/").removesuffix("/v1")
