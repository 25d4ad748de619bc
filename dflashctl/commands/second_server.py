"""A second server of the same profile, started and stopped through this package's own up and down."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.instance_profile import server_profile
from dflashctl.commands.live_server import LiveServer, live_server
from dflashctl.core.errors import Busy, CheckFailed, ExitCode, Interrupted, UsageProblem
from dflashctl.core.options import PlanRequest
from dflashctl.core.report import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.progress import Progress
    from dflashctl.env import Env

NO_SPECULATION = "speculative.algorithm=NONE"
_PORTS_TRIED = 50


@contextmanager
def without_speculation(env: Env, server: LiveServer, profile: str | None) -> Iterator[LiveServer]:
    """A server like `server`, but without speculation; it is stopped at the end of the block.

    UsageProblem when no profile is known, CheckFailed when it does not come up beside the first one.
    """
    known = profile or server_profile(env, server)
    if known is None:
        raise UsageProblem(
            "a server without speculation needs a profile",
            hint="name an instance, or add --profile; smoke also takes --against URL",
        )
    beside = server.name or env.profiles.find(known).name
    request = PlanRequest(profile=known, sets=(NO_SPECULATION,), name=f"{beside}-no-spec")
    with own_server(env, request) as own:
        yield own


@contextmanager
def own_server(env: Env, request: PlanRequest) -> Iterator[LiveServer]:
    """Bring `request` up, detached, on the first free port from the profile's on, and down at the end.

    However the block or the start ends, a signal included: what was started here does not outlive it.
    """
    from dflashctl.commands.up import up
    from dflashctl.supervise import StoppedEarly

    placed = request if request.port is not None else replace(request, port=_free_port(env, request))
    name = placed.name or placed.profile
    ours = not env.instances.read(name).supervised
    try:
        report = up(env, placed, detach=True)
    except Busy:
        raise
    except BaseException as stop:
        if ours:
            _stop(env, name)
        if isinstance(stop, StoppedEarly):
            raise Interrupted(f"interrupted while {name!r} was started") from stop
        raise
    try:
        _require_up(report, name)
        yield live_server(env, name, None)
    finally:
        if report.outcome is not Outcome.FAILED:
            _stop(env, name)


def _stop(env: Env, name: str) -> None:
    """Whatever happens meanwhile: another signal, or a terminal that is gone and takes no word of progress."""
    from dflashctl.commands.down import down
    from dflashctl.supervise import undisturbed

    def notify(event: Progress) -> None:
        with suppress(OSError):
            env.notify(event)

    unheard = copy(env)
    unheard.notify = notify
    with undisturbed():
        down(unheard, name)


def _require_up(report: Report, name: str) -> None:
    if report.exit_code in {ExitCode.OK, ExitCode.CHECK_FAILED} and report.outcome is not Outcome.FAILED:
        return
    said = report.errors[0].message if report.errors else report.outcome.value
    raise CheckFailed(
        f"the server {name!r} did not come up: {said}",
        detail=report.errors[0].detail if report.errors else None,
        hint="does it fit beside the running one? dflashctl down first, or use --reference FILE",
    )


def _free_port(env: Env, request: PlanRequest) -> int:
    """The first port from the profile's on at which a server could listen."""
    server = env.profiles.load(request.profile).profile.server
    host, first = server.host, server.port
    for port in range(first, first + _PORTS_TRIED):
        if env.machine.port_use(host, port, "HTTP").free:
            return port
    raise CheckFailed(f"no free port from {first} to {first + _PORTS_TRIED - 1}")
