"""A second server of the same profile, started and stopped through this package's own up and down."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.instance_profile import same_server
from dflashctl.commands.live_server import LiveServer, live_server
from dflashctl.core.errors import Busy, CheckFailed, ExitCode, Interrupted, Permanent, UsageProblem
from dflashctl.core.report import Outcome, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.options import PlanRequest
    from dflashctl.env import Env

NO_SPECULATION = "speculative.algorithm=NONE"
_PORTS_TRIED = 50
_RACES = 3


@contextmanager
def without_speculation(env: Env, server: LiveServer, profile: str | None) -> Iterator[LiveServer]:
    """A server like `server`, but without speculation; it is stopped at the end of the block.

    UsageProblem when no profile is known, CheckFailed when it does not come up beside the first one.
    """
    like = require_profile(env, server, profile)
    beside = server.name or env.profiles.find(like.profile).name
    with own_server(env, replace(plain(like), name=f"{beside}-no-spec")) as own:
        yield own


def require_profile(env: Env, server: LiveServer, profile: str | None) -> PlanRequest:
    """What starts a server like `server`; UsageProblem when nobody knows a profile for it."""
    like = same_server(env, server, profile)
    if like is None:
        raise UsageProblem(
            "a server without speculation needs a profile",
            hint="name an instance, or add --profile; smoke also takes --against URL",
        )
    return like


def plain(request: PlanRequest) -> PlanRequest:
    """The same server without speculation: with every setting that is not speculation's own."""
    kept = tuple(word for word in request.sets if not is_speculative(word))
    return replace(request, sets=(*kept, NO_SPECULATION), block_size=None, window_size=None)


def is_speculative(word: str) -> bool:
    """Whether a profile path, or a path=value word, means nothing without speculation."""
    return word.startswith("speculative.")


@contextmanager
def own_server(env: Env, request: PlanRequest) -> Iterator[LiveServer]:
    """Bring `request` up, detached, on the first free port from the profile's on, and down at the end.

    However the block or the start ends, a signal included: what was started here does not outlive it.
    """
    from dflashctl.supervise import StoppedEarly

    name = request.name or request.profile
    ours = not env.instances.read(name).supervised
    try:
        report = _up(env, request)
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


def _up(env: Env, request: PlanRequest) -> Report:
    """Start it, on another port when somebody took the free one meanwhile: benchmarks begin at the same second."""
    from dflashctl.commands.up import up

    for race in range(1, _RACES + 1):
        placed = request if request.port is not None else replace(request, port=_free_port(env, request))
        try:
            report = up(env, placed, detach=True)
        except Permanent:
            if race == _RACES or not _lost_race(env, request, placed):
                raise
            continue
        if report.exit_code is ExitCode.INTERRUPTED:
            raise Interrupted(f"interrupted while {request.name or request.profile!r} was started")
        if race == _RACES or report.outcome is not Outcome.FAILED or not _lost_race(env, request, placed):
            break
    return report


def _lost_race(env: Env, asked: PlanRequest, placed: PlanRequest) -> bool:
    host = placed.host or env.profiles.load(placed.profile).profile.server.host
    return (
        asked.port is None
        and placed.port is not None
        and not env.machine.port_use(host, placed.port, "HTTP").free
    )


def _stop(env: Env, name: str) -> None:
    """Whatever signal comes meanwhile."""
    from dflashctl.commands.down import down
    from dflashctl.supervise import undisturbed

    with undisturbed():
        down(env, name)


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
