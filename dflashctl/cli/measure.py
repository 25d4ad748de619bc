"""smoke and bench: signatures and help."""

from __future__ import annotations

from typing import Annotated

import typer

from dflashctl.cli import options as o

Url = Annotated[str | None, typer.Option("--url", metavar="URL", help="Any server, instead of an instance.")]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        "--api-key-env", metavar="VAR", help="The variable that holds the server's key (DFLASHCTL_API_KEY)."
    ),
]


def smoke(
    ctx: typer.Context,
    name: o.InstanceArgument = None,
    *,
    url: Url = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the proofs that `up` makes.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="PROOF", help="Only that proof; repeatable.")
    ] = None,
    against_no_spec: Annotated[
        bool,
        typer.Option("--against-no-spec", help="Start a second server without speculation as reference."),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="URL", help="A server without speculation as reference."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", metavar="FILE", help="A saved run as reference.")
    ] = None,
    save_reference: Annotated[
        str | None,
        typer.Option("--save-reference", metavar="FILE", help="Save this server's texts as a reference."),
    ] = None,
    profile: o.ProfileOption = None,
    near_tie: Annotated[
        float | None,
        typer.Option(
            "--near-tie", metavar="NATS", help="Log-probability margin below which a difference is noise."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Limit of one request.")
    ] = 120.0,
    api_key_env: ApiKeyEnv = None,
    json: o.Json = False,
) -> object:
    """Prove that a live server works, that it really speculates, and that its text is the target's own.

    Example: dflashctl smoke tiny-cpu

    Example: dflashctl smoke --url http://127.0.0.1:30000 --only lossless
    """
    from dflashctl.commands.smoke import smoke as run
    from dflashctl.core.smoke import SmokeOptions

    return run(
        ctx.obj.env,
        SmokeOptions(
            name=name,
            url=url,
            only=tuple(only or ()),
            quick=quick,
            against_no_spec=against_no_spec,
            against=against,
            reference=reference,
            save_reference=save_reference,
            profile=profile,
            near_tie_nats=near_tie,
            timeout_s=timeout,
            api_key_env=api_key_env,
        ),
    )


WORK = "Workload"
LOAD = "Load"
JUDGE = "Judgement"
FILES = "Files"


def bench(
    ctx: typer.Context,
    name: o.InstanceArgument = None,
    *,
    url: Url = None,
    profile: o.ProfileOption = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            "--workload",
            "-w",
            metavar="SET",
            help="gsm8k, math500, humaneval, humaneval-long, mbpp, mt-bench, longbench-v2, tiny-math, random, shared-prefix; repeatable.",
            rich_help_panel=WORK,
        ),
    ] = None,
    prompts: Annotated[
        str | None,
        typer.Option(
            "--prompts",
            metavar="FILE",
            help="Your own prompts: JSONL of OpenAI messages.",
            rich_help_panel=WORK,
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", help="So many prompts of each set.", rich_help_panel=WORK),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", metavar="N", help="Output tokens of a request.", rich_help_panel=WORK),
    ] = None,
    sampling: Annotated[
        str | None,
        typer.Option(
            "--sampling",
            metavar="greedy|recommended",
            help="Default: as the published figures were made.",
            rich_help_panel=WORK,
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option("--temperature", metavar="T", help="Sampling temperature.", rich_help_panel=WORK),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option("--top-p", metavar="P", help="Nucleus of the sampling.", rich_help_panel=WORK),
    ] = None,
    thinking: Annotated[
        bool | None,
        typer.Option("--thinking/--no-thinking", help="Reasoning on or off.", rich_help_panel=WORK),
    ] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Generate on past the end of text.", rich_help_panel=WORK)
    ] = False,
    input_tokens: Annotated[
        int | None,
        typer.Option("--input-tokens", metavar="N", help="Length of random prompts.", rich_help_panel=WORK),
    ] = None,
    prefix_tokens: Annotated[
        int | None,
        typer.Option("--prefix-tokens", metavar="N", help="Length of shared prefixes.", rich_help_panel=WORK),
    ] = None,
    groups: Annotated[
        int, typer.Option("--groups", metavar="N", help="Number of shared prefixes.", rich_help_panel=WORK)
    ] = 1,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", help="Seed of prompts and arrivals.", rich_help_panel=WORK)
    ] = 42,
    api: Annotated[
        str,
        typer.Option(
            "--api",
            metavar="chat|generate",
            help="Who applies the chat template: the server or we.",
            rich_help_panel=WORK,
        ),
    ] = "chat",
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            metavar="DIR",
            help="The target's folder, for --api generate.",
            rich_help_panel=WORK,
        ),
    ] = None,
    offline: o.Offline = False,
    concurrency: Annotated[
        str | None,
        typer.Option(
            "--concurrency",
            "-c",
            metavar="LIST",
            help="Requests in flight, with commas: 1,8,32.",
            rich_help_panel=LOAD,
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate", metavar="LIST", help="Requests per second (Poisson), with commas.", rich_help_panel=LOAD
        ),
    ] = None,
    warm_up: Annotated[
        int | None,
        typer.Option(
            "--warm-up", metavar="N", help="Requests before the clock starts.", rich_help_panel=LOAD
        ),
    ] = None,
    flush_cache: Annotated[
        bool | None,
        typer.Option(
            "--flush-cache/--keep-cache", help="Empty the prefix cache before each run.", rich_help_panel=LOAD
        ),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", metavar="N", help="Processes of the load generator.", rich_help_panel=LOAD
        ),
    ] = 1,
    timeout: Annotated[
        float,
        typer.Option("--timeout", metavar="SECONDS", help="Limit of one request.", rich_help_panel=LOAD),
    ] = 1800.0,
    max_duration: Annotated[
        float | None,
        typer.Option("--max-duration", metavar="SECONDS", help="Limit of one run.", rich_help_panel=LOAD),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="KEY=A,B",
            help="block_size=8,16, concurrency=1,8, or a profile path; repeatable.",
            rich_help_panel=LOAD,
        ),
    ] = None,
    baseline: Annotated[
        bool,
        typer.Option(
            "--baseline/--no-baseline", help="In a sweep, also run without speculation.", rich_help_panel=LOAD
        ),
    ] = True,
    speculation: Annotated[
        bool | None,
        typer.Option(
            "--speculation/--no-speculation", help="Only with, or only without.", rich_help_panel=LOAD
        ),
    ] = None,
    min_accept_length: Annotated[
        float | None,
        typer.Option("--min-accept-length", metavar="X", help="Exit 1 below it.", rich_help_panel=JUDGE),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="FILE", help="An earlier result to compare with.", rich_help_panel=JUDGE
        ),
    ] = None,
    max_regression: Annotated[
        float | None,
        typer.Option(
            "--max-regression",
            metavar="SHARE",
            help="Exit 1 when worse than --against by more: 0.05.",
            rich_help_panel=JUDGE,
        ),
    ] = None,
    expect: Annotated[
        bool,
        typer.Option(
            "--expect/--no-expect",
            help="Exit 1 below the profile's published figures.",
            rich_help_panel=JUDGE,
        ),
    ] = True,
    expect_tolerance: Annotated[
        float,
        typer.Option(
            "--expect-tolerance", metavar="SHARE", help="What may be missing.", rich_help_panel=JUDGE
        ),
    ] = 0.02,
    slo_ttft_ms: Annotated[
        float | None,
        typer.Option(
            "--slo-ttft-ms", metavar="MS", help="Goodput counts requests within it.", rich_help_panel=JUDGE
        ),
    ] = None,
    slo_tpot_ms: Annotated[
        float | None,
        typer.Option(
            "--slo-tpot-ms", metavar="MS", help="Goodput counts requests within it.", rich_help_panel=JUDGE
        ),
    ] = None,
    slo_e2e_ms: Annotated[
        float | None,
        typer.Option(
            "--slo-e2e-ms", metavar="MS", help="Goodput counts requests within it.", rich_help_panel=JUDGE
        ),
    ] = None,
    allow_slow_client: Annotated[
        bool,
        typer.Option(
            "--allow-slow-client", help="Give figures that the client may have spoilt.", rich_help_panel=JUDGE
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The result file; runs are appended.",
            rich_help_panel=FILES,
        ),
    ] = None,
    records: Annotated[
        bool, typer.Option("--records", help="Keep every request in the result file.", rich_help_panel=FILES)
    ] = False,
    csv: Annotated[
        str | None, typer.Option("--csv", metavar="FILE", help="The table as CSV.", rich_help_panel=FILES)
    ] = None,
    jsonl: Annotated[
        str | None,
        typer.Option(
            "--jsonl", metavar="FILE", help="The runs as bench_serving writes them.", rich_help_panel=FILES
        ),
    ] = None,
    api_key_env: ApiKeyEnv = None,
    json: o.Json = False,
) -> object:
    """Measure accept length, latency and throughput, beside the published figures.

    Example: dflashctl bench tiny-cpu

    Example: dflashctl bench --profile tiny-cpu --sweep block_size=8,16
    """
    from dflashctl.cli.lists import numbers, whole_numbers
    from dflashctl.commands.bench import bench as run
    from dflashctl.core.bench_options import BenchOptions, Gates

    gates = Gates(
        min_accept_length=min_accept_length,
        max_regression=max_regression,
        against=against,
        expect=expect,
        expect_tolerance=expect_tolerance,
    )
    options = BenchOptions(
        name=name,
        url=url,
        profile=profile,
        workloads=tuple(workload or ()),
        prompts=prompts,
        count=count,
        concurrency=whole_numbers("--concurrency", concurrency),
        rates=numbers("--rate", rate),
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
        sweep=tuple(sweep or ()),
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


def bench_compare(
    ctx: typer.Context,
    a: Annotated[str, typer.Argument(metavar="A", help="A result file.")],
    b: Annotated[str, typer.Argument(metavar="B", help="Another one.")],
    *,
    allow_unlike: Annotated[
        bool, typer.Option("--allow-unlike", help="Compare runs of unlike settings all the same.")
    ] = False,
    max_regression: Annotated[
        float | None,
        typer.Option("--max-regression", metavar="SHARE", help="Exit 1 when B is worse by more: 0.05."),
    ] = None,
    json: o.Json = False,
) -> object:
    """Compare two results, with intervals; unlike settings are refused or marked.

    Example: dflashctl bench compare before.json after.json
    """
    from dflashctl.commands.bench_compare import bench_compare as run

    return run(ctx.obj.env, a, b, allow_unlike=allow_unlike, max_regression=max_regression)


def bench_report(
    ctx: typer.Context,
    files: Annotated[list[str], typer.Argument(metavar="RUN...", help="Result files.")],
    *,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="Default: dflashctl-report.html.")
    ] = None,
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="The charts as a picture, too.")
    ] = None,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="The heading.")] = None,
    json: o.Json = False,
) -> object:
    """Make one self-contained HTML page with charts of results.

    Example: dflashctl bench report run.json -o report.html
    """
    from dflashctl.commands.bench_report import bench_report as run

    return run(ctx.obj.env, tuple(files), output=output, png=png, title=title)
