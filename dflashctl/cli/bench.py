"""bench: signature and help."""

from __future__ import annotations

import typer

from dflashctl.cli import bench_options as b
from dflashctl.cli import options as o


def bench(
    ctx: typer.Context,
    name: o.InstanceArgument = None,
    axes: b.Axes = None,
    *,
    url: o.Url = None,
    profile: o.ProfileOption = None,
    workload: b.Workload = None,
    prompts: b.Prompts = None,
    count: b.Count = None,
    max_tokens: b.MaxTokens = None,
    sampling: b.Sampling = None,
    temperature: b.Temperature = None,
    top_p: b.TopP = None,
    thinking: b.Thinking = None,
    ignore_eos: b.IgnoreEos = False,
    input_tokens: b.InputTokens = None,
    prefix_tokens: b.PrefixTokens = None,
    groups: b.Groups = 1,
    seed: b.Seed = 42,
    api: b.Api = "chat",
    tokenizer: b.Tokenizer = None,
    offline: o.Offline = False,
    concurrency: b.Concurrency = None,
    rate: b.Rate = None,
    warm_up: b.WarmUp = None,
    flush_cache: b.FlushCache = None,
    processes: b.Processes = None,
    timeout: b.Timeout = 1800.0,
    max_duration: b.MaxDuration = None,
    sweep: b.Sweep = None,
    baseline: b.Baseline = True,
    speculation: b.Speculation = None,
    min_accept_length: b.MinAcceptLength = None,
    against: b.Against = None,
    max_regression: b.MaxRegression = None,
    expect: b.Expect = True,
    expect_tolerance: b.ExpectTolerance = 0.02,
    slo_ttft_ms: b.SloTtftMs = None,
    slo_tpot_ms: b.SloTpotMs = None,
    slo_e2e_ms: b.SloE2eMs = None,
    allow_slow_client: b.AllowSlowClient = False,
    output: b.Output = None,
    records: b.Records = False,
    csv: b.Csv = None,
    jsonl: b.Jsonl = None,
    api_key_env: o.ApiKeyEnv = None,
    json: o.Json = False,
) -> object:
    """Measure accept length, latency and throughput, beside the published figures.

    Example: dflashctl bench tiny-cpu

    Example: dflashctl bench --profile tiny-cpu --sweep block_size=8,16 concurrency=1,8,32
    """
    from dflashctl.cli.lists import numbers, whole_numbers
    from dflashctl.commands.bench import bench as run
    from dflashctl.core.bench_options import BenchOptions, Gates, name_and_sweep

    gates = Gates(
        min_accept_length=min_accept_length,
        max_regression=max_regression,
        against=against,
        expect=expect,
        expect_tolerance=expect_tolerance,
    )
    instance, swept = name_and_sweep((*filter(None, (name,)), *(axes or ())), tuple(sweep or ()))
    options = BenchOptions(
        name=instance,
        url=url,
        profile=profile,
        workloads=tuple(workload or ()),
        prompts=prompts,
        count=count,
        concurrency=whole_numbers("--concurrency", tuple(concurrency or ())),
        rates=numbers("--rate", tuple(rate or ())),
        api=api,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        sampling=sampling,
        temperature=temperature,
        top_p=top_p,
        thinking=thinking,
        ignore_eos=ignore_eos,
        seed=seed,
        warm_up=warm_up,
        input_tokens=input_tokens,
        prefix_tokens=prefix_tokens,
        groups=groups,
        sweep=swept,
        baseline=baseline,
        speculation=speculation,
        flush_cache=flush_cache,
        slo_ttft_ms=slo_ttft_ms,
        slo_tpot_ms=slo_tpot_ms,
        slo_e2e_ms=slo_e2e_ms,
        gates=gates,
        output=output,
        records=records,
        csv=csv,
        jsonl=jsonl,
        processes=processes,
        allow_slow_client=allow_slow_client,
        timeout_s=timeout,
        max_duration_s=max_duration,
        api_key_env=api_key_env,
        offline=offline,
    )
    return run(ctx.obj.env, options)
