"""From the options, the profile and the server to the exact setting of each run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.bench_setting import Setting
from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from dflashctl.commands.bench_prompts import Gathered
    from dflashctl.commands.bench_servers import Variant
    from dflashctl.core.bench_options import BenchOptions, Sweep
    from dflashctl.core.profile import Expect, Profile
    from dflashctl.proofs.client import Client

DEFAULT_WORKLOAD = "tiny-math"


def workload_names(options: BenchOptions, profile: Profile | None) -> tuple[str, ...]:
    """The workloads asked for; else those with published figures; else the built-in one."""
    if options.prompts is not None:
        return (Path(options.prompts).stem,)
    published = dict.fromkeys(figure.dataset for figure in profile.expect.figures) if profile else {}
    return options.workloads or tuple(published) or (DEFAULT_WORKLOAD,)


def loads(
    options: BenchOptions, sweep: Sweep, expect: Expect | None, name: str
) -> tuple[tuple[int | None, float | None], ...]:
    """(concurrency, rate) of each run: closed loops first, then open ones; as published when nothing was asked."""
    figures = expect.figures if expect else ()
    published = {f.concurrency for f in figures if f.dataset == name and f.concurrency is not None}
    concurrency = sweep.concurrency or options.concurrency
    rates = sweep.rates or options.rates
    closed = concurrency or (() if rates else tuple(sorted(published)) or (1,))
    return (*((c, None) for c in closed), *((None, r) for r in rates))


def output_limit(options: BenchOptions, expect: Expect | None, name: str) -> int | None:
    """The option; else the published limit where figures of this set were published; else the workload's own."""
    if options.max_tokens is not None or expect is None:
        return options.max_tokens
    return expect.sampling.max_tokens if any(figure.dataset == name for figure in expect.figures) else None


def setting_of(
    options: BenchOptions,
    gathered: Gathered,
    client: Client,
    variant: Variant,
    expect: Expect | None,
    warm_up: int,
) -> Setting:
    temperature, top_p = _sampling(options, expect)
    speculates = client.facts.speculates if variant.speculation is None else variant.speculation
    return Setting(
        dataset=gathered.name,
        api=options.api,
        speculation=speculates,
        block_size=client.facts.block_size if speculates is not False else None,
        concurrency=None,
        request_rate=None,
        max_tokens=gathered.max_tokens,
        temperature=temperature,
        top_p=top_p,
        thinking=expect.sampling.thinking if options.thinking is None and expect else options.thinking,
        ignore_eos=options.ignore_eos,
        seed=options.seed,
        prompts=len(gathered.prompts),
        prompts_hash=gathered.hash,
        turns=sum(1 + len(prompt.follow_ups) for prompt in gathered.prompts),
        warm_up=warm_up,
        characters_per_token=gathered.characters_per_token,
        overrides=variant.overrides,
    )


def _sampling(options: BenchOptions, expect: Expect | None) -> tuple[float | None, float | None]:
    """(temperature, top_p): options, else --sampling, else as published, else greedy."""
    if options.sampling not in {None, "greedy", "recommended"}:
        raise UsageProblem(
            f"there is no sampling {options.sampling!r}", hint="--sampling greedy or recommended"
        )
    if options.sampling == "recommended":
        return options.temperature, options.top_p
    published = expect.sampling if expect and options.sampling is None else None
    base = (published.temperature, published.top_p) if published else (0.0, 1.0)
    return (
        base[0] if options.temperature is None else options.temperature,
        base[1] if options.top_p is None else options.top_p,
    )
