"""From the options, the profile and the server to the exact setting of each run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.bench_setting import Setting
from dflashctl.core.errors import UsageProblem
from dflashctl.workloads import WORKLOADS, longbench_v2, workload

if TYPE_CHECKING:
    from dflashctl.commands.bench_prompts import Gathered
    from dflashctl.commands.bench_servers import Variant
    from dflashctl.core.bench_options import BenchOptions, Sweep
    from dflashctl.core.profile import Expect, Profile
    from dflashctl.proofs.client import Client

DEFAULT_WORKLOAD = "tiny-math"
_FEWEST_WARM_UPS = 8


def workloads_of(options: BenchOptions, profile: Profile | None) -> tuple[tuple[str, BenchOptions], ...]:
    """The name of each workload, with its options: those of a set have no `prompts`.

    What was asked for, a file of one's own first; else the sets with published figures; else the built-in one.
    UsageProblem for a name that is no workload.
    """
    own = () if options.prompts is None else ((_own_name(Path(options.prompts)), options),)
    published = dict.fromkeys(figure.dataset for figure in profile.expect.figures) if profile else {}
    names = options.workloads or (() if own else tuple(published) or (DEFAULT_WORKLOAD,))
    for name in options.workloads:
        workload(name)
    return (*own, *((name, replace(options, prompts=None)) for name in names))


def _own_name(path: Path) -> str:
    """The file's name without its ending, unless that is a workload's: own prompts are never shown as a known set."""
    if path.stem not in WORKLOADS:
        return path.stem
    return path.name if path.suffix else f"{path.name} (file)"


def prompts_unlike(options: BenchOptions, gathered: Gathered, context_tokens: int | None) -> tuple[str, ...]:
    """What makes the prompts others than the published set's, whatever the name that they go by."""
    if options.prompts is not None:
        return (f"own prompts from {options.prompts}",)
    chosen = WORKLOADS.get(gathered.name)
    lengths = (("PREFIX_TOKENS", options.prefix_tokens), ("INPUT_TOKENS", options.input_tokens))
    told = [
        f"--{name.lower().replace('_', '-')} {asked}, published {usual}"
        for name, asked in lengths
        if asked is not None and (usual := getattr(chosen, name, None)) is not None and asked != usual
    ]
    room = context_tokens - gathered.max_tokens if context_tokens else None
    if gathered.name == longbench_v2.NAME and room is not None and room < longbench_v2.BUCKETS[-1]:
        told.append(f"prompts of more than {room} tokens do not fit this server and are left out")
    return tuple(told)


def loads(
    options: BenchOptions, sweep: Sweep, expect: Expect | None, name: str
) -> tuple[tuple[int | None, float | None], ...]:
    """(concurrency, rate) of each run: closed loops first, then open ones; as published when nothing was asked.

    The values of a sweep go on with those of the options, each of them once.
    """
    figures = expect.figures if expect and options.prompts is None else ()
    published = {f.concurrency for f in figures if f.dataset == name and f.concurrency is not None}
    concurrency = (*options.concurrency, *(c for c in sweep.concurrency if c not in options.concurrency))
    rates = (*options.rates, *(r for r in sweep.rates if r not in options.rates))
    closed = concurrency or (() if rates else tuple(sorted(published)) or (1,))
    return (*((c, None) for c in closed), *((None, r) for r in rates))


def warm_ups(options: BenchOptions, concurrency: int | None, prompts: int, *, made_to_length: bool) -> int:
    """Requests before the clock starts: the option; else as many as this load has in flight, an open one as 1.

    At least 8, as a server that has just started is slow at first, but not of prompts that are made to a length: those
    may take seconds each.
    """
    if options.warm_up is not None:
        return options.warm_up
    return min(max(concurrency or 1, 1 if made_to_length else _FEWEST_WARM_UPS), prompts)


def output_limit(options: BenchOptions, expect: Expect | None, name: str) -> int | None:
    """The option; else the published limit where figures of this set were published; else the workload's own."""
    if options.max_tokens is not None or expect is None or options.prompts is not None:
        return options.max_tokens
    return expect.sampling.max_tokens if any(figure.dataset == name for figure in expect.figures) else None


def setting_of(
    options: BenchOptions,
    gathered: Gathered,
    client: Client,
    variant: Variant,
    expect: Expect | None,
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
        characters_per_token=gathered.characters_per_token,
        overrides=variant.overrides,
        prompts_unlike=prompts_unlike(options, gathered, client.facts.max_model_len),
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
