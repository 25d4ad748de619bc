"""The servers that a benchmark runs against, one after the other: those that run, and those it starts itself."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from dflashctl.commands.bench_simulated import refuse_planned
from dflashctl.commands.instance_profile import same_server, server_profile
from dflashctl.commands.live_server import LiveServer, live_server
from dflashctl.commands.second_server import NO_SPECULATION, is_speculative, own_server, plain
from dflashctl.core.errors import Permanent, UsageProblem
from dflashctl.core.options import PlanRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.bench_options import BenchOptions, Sweep
    from dflashctl.env import Env


Overrides = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One server of a sweep: a request to start it, or None for the one that runs.

    `speculation` False asks for no speculation: by the request that starts it, or by each request's body.
    """

    start: PlanRequest | None = None
    speculation: bool | None = None
    overrides: Overrides = ()

    @property
    def plain(self) -> bool:
        """Whether it was asked to be without speculation, also by a sweep over the algorithm."""
        return self.speculation is False or NO_SPECULATION in (
            f"{path}={value}" for path, value in self.overrides
        )


def profile_name(env: Env, options: BenchOptions) -> str | None:
    """What loads the profile that the benchmark is about: the one named, else that of the running instance."""
    if options.profile is not None or options.url is not None:
        return options.profile
    return server_profile(env, live_server(env, options.name, None))


def base_request(env: Env, options: BenchOptions) -> PlanRequest | None:
    """What starts a server of our own: the profile that was named, else what the instance was started with."""
    if _starts_own(options) or options.url is not None:
        return None if options.profile is None else PlanRequest(profile=options.profile)
    return same_server(env, live_server(env, options.name, None), options.profile)


def variants(
    options: BenchOptions, sweep: Sweep, base: PlanRequest | None, *, switchable: bool
) -> tuple[Variant, ...]:
    """All servers of the sweep, those without speculation last.

    `base` starts a server like the one that is meant. `switchable`: the running server can leave speculation out of
    a request.
    """
    if not (sweep.restarts or _starts_own(options)):
        running = Variant(speculation=options.speculation)
        return (running, *_baseline(options, sweep, base, switchable=switchable))
    if base is None:
        raise UsageProblem(
            "this sweep restarts the server, so it needs a profile", hint="--profile NAME instead of --url"
        )
    started = tuple(_started(base, block, overrides) for block, overrides in _combinations(sweep))
    plain_ones = tuple(dict.fromkeys(_without(base, variant.overrides) for variant in started))
    if options.speculation is False:
        return plain_ones
    wanted = options.baseline and bool(options.sweep) and options.speculation is None
    return (*started, *(plain_ones if wanted else ()))


def require_plans(env: Env, asked: tuple[Variant, ...]) -> None:
    """Permanent for the first server that its plan refuses, CheckFailed for one that makes its accept lengths up.

    Found now, and not after hours of measuring the others.
    """
    from dflashctl.commands.planned import planned_to_start

    for request in (variant.start for variant in asked if variant.start is not None):
        plan = planned_to_start(env, request).plan
        refuse_planned(plan)
        refusals = plan.refusals
        if refusals:
            # A sweep has several plans: the hint shows which one it is, with every refusal and its fix.
            hint = replace(request, dry_run=True).line("up")
            raise Permanent(refusals[0].summary, detail=refusals[0].detail, hint=hint)


def _starts_own(options: BenchOptions) -> bool:
    return options.profile is not None and options.name is None and options.url is None


def _baseline(
    options: BenchOptions, sweep: Sweep, base: PlanRequest | None, *, switchable: bool
) -> tuple[Variant, ...]:
    """Beside a running server: by its own switch, else as a second server; none without a sweep."""
    wanted = options.baseline and bool(options.sweep) and options.speculation is None and not sweep.restarts
    if not wanted:
        return ()
    if switchable:
        return (Variant(speculation=False),)
    return (_without(base, ()),) if base is not None else ()


def _without(base: PlanRequest, overrides: Overrides) -> Variant:
    """The baseline of a variant: all of its settings that mean something without speculation."""
    kept = common(overrides)
    return Variant(start=plain(_with(base, kept)), speculation=False, overrides=kept)


def common(overrides: Overrides) -> Overrides:
    """What a run with speculation and the one without have to share, so that a ratio of them is speculation's alone."""
    return tuple((path, value) for path, value in overrides if not is_speculative(path))


def _combinations(sweep: Sweep) -> Iterator[tuple[int | None, Overrides]]:
    blocks: tuple[int | None, ...] = sweep.block_sizes or (None,)
    paths = [path for path, _ in sweep.servers]
    for block in blocks:
        for values in product(*(items for _, items in sweep.servers)):
            yield block, tuple(zip(paths, values, strict=True))


def _started(base: PlanRequest, block: int | None, overrides: Overrides) -> Variant:
    request = _with(base, overrides)
    return Variant(
        start=request if block is None else replace(request, block_size=block), overrides=overrides
    )


def _with(base: PlanRequest, overrides: Overrides) -> PlanRequest:
    return replace(base, sets=(*base.sets, *(f"{path}={value}" for path, value in overrides)))


@contextmanager
def serving(env: Env, options: BenchOptions, variant: Variant) -> Iterator[LiveServer]:
    """The server of `variant`, up for as long as the block lasts when it is our own."""
    if variant.start is None:
        yield live_server(env, options.name, options.url)
        return
    name = f"{env.profiles.find(variant.start.profile).name}-bench"
    with own_server(env, replace(variant.start, name=name)) as server:
        yield server
