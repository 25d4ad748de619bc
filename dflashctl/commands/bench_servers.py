"""The servers that a benchmark runs against, one after the other: those that run, and those it starts itself."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from dflashctl.commands.instance_profile import server_profile
from dflashctl.commands.live_server import LiveServer, live_server
from dflashctl.commands.second_server import NO_SPECULATION, own_server
from dflashctl.core.errors import UsageProblem
from dflashctl.core.options import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.bench_options import BenchOptions, Sweep
    from dflashctl.env import Env


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One server of a sweep: a request to start it, or None for the one that runs.

    `speculation` False asks for no speculation: by the request that starts it, or by each request's body.
    """

    start: PlanRequest | None = None
    speculation: bool | None = None
    overrides: tuple[tuple[str, str], ...] = ()


def profile_name(env: Env, options: BenchOptions) -> str | None:
    """What loads the profile that the benchmark is about: the one named, else that of the running instance."""
    if options.profile is not None or options.url is not None:
        return options.profile
    return server_profile(env, live_server(env, options.name, None))


def variants(
    options: BenchOptions, sweep: Sweep, profile: str | None, *, switchable: bool
) -> tuple[Variant, ...]:
    """All servers of the sweep, the one without speculation last.

    `switchable`: the running server can leave speculation out of a request.
    """
    if not (sweep.restarts or _starts_own(options)):
        running = Variant(speculation=options.speculation)
        return (running, *_baseline(options, sweep, profile, switchable=switchable))
    if profile is None:
        raise UsageProblem(
            "this sweep restarts the server, so it needs a profile", hint="--profile NAME instead of --url"
        )
    baseline = _own_baseline(profile)
    if options.speculation is False:
        return baseline
    started = tuple(_started(profile, block, values, sweep) for block, values in _combinations(sweep))
    wanted = options.baseline and bool(options.sweep) and options.speculation is None
    return (*started, *(baseline if wanted else ()))


def _starts_own(options: BenchOptions) -> bool:
    return options.profile is not None and options.name is None and options.url is None


def _baseline(
    options: BenchOptions, sweep: Sweep, profile: str | None, *, switchable: bool
) -> tuple[Variant, ...]:
    """Beside a running server: by its own switch, else as a second server; none without a sweep."""
    wanted = options.baseline and bool(options.sweep) and options.speculation is None and not sweep.restarts
    if not wanted:
        return ()
    if switchable:
        return (Variant(speculation=False),)
    return _own_baseline(profile) if profile is not None else ()


def _own_baseline(profile: str) -> tuple[Variant, ...]:
    request = PlanRequest(profile=profile, sets=(NO_SPECULATION,))
    return (Variant(start=request, speculation=False),)


def _combinations(sweep: Sweep) -> Iterator[tuple[int | None, tuple[str, ...]]]:
    blocks: tuple[int | None, ...] = sweep.block_sizes or (None,)
    for block in blocks:
        for values in product(*(items for _, items in sweep.servers)):
            yield block, values


def _started(profile: str, block: int | None, values: tuple[str, ...], sweep: Sweep) -> Variant:
    overrides = tuple((path, value) for (path, _), value in zip(sweep.servers, values, strict=True))
    request = PlanRequest(
        profile=profile,
        sets=tuple(f"{path}={value}" for path, value in overrides),
        block_size=block,
    )
    return Variant(start=request, overrides=overrides)


@contextmanager
def serving(env: Env, options: BenchOptions, variant: Variant) -> Iterator[LiveServer]:
    """The server of `variant`, up for as long as the block lasts when it is our own."""
    if variant.start is None:
        yield live_server(env, options.name, options.url)
        return
    name = f"{env.profiles.find(variant.start.profile).name}-bench"
    with own_server(env, replace(variant.start, name=name)) as server:
        yield server
