"""Options of `bench`, by heading."""

from __future__ import annotations

from typing import Annotated

import typer

WORK = "Workload"
LOAD = "Load"
JUDGE = "Judgement"
FILES = "Files"

Axes = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=A,B...", help="Further axes of --sweep.", show_default=False),
]
Workload = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        "-w",
        metavar="SET",
        help="gsm8k, math500, humaneval, humaneval-long, mbpp, mt-bench, longbench-v2, tiny-math, random, shared-prefix; repeatable.",
        rich_help_panel=WORK,
    ),
]
Prompts = Annotated[
    str | None,
    typer.Option(
        "--prompts", metavar="FILE", help="Your own prompts: JSONL of OpenAI messages.", rich_help_panel=WORK
    ),
]
Count = Annotated[
    int | None,
    typer.Option("--count", metavar="N", help="So many prompts of each set.", rich_help_panel=WORK),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="N", help="Output tokens of a request.", rich_help_panel=WORK),
]
Sampling = Annotated[
    str | None,
    typer.Option(
        "--sampling",
        metavar="greedy|recommended",
        help="Default: as the published figures were made.",
        rich_help_panel=WORK,
    ),
]
Temperature = Annotated[
    float | None,
    typer.Option("--temperature", metavar="T", help="Sampling temperature.", rich_help_panel=WORK),
]
TopP = Annotated[
    float | None, typer.Option("--top-p", metavar="P", help="Nucleus of the sampling.", rich_help_panel=WORK)
]
Thinking = Annotated[
    bool | None, typer.Option("--thinking/--no-thinking", help="Reasoning on or off.", rich_help_panel=WORK)
]
IgnoreEos = Annotated[
    bool, typer.Option("--ignore-eos", help="Generate on past the end of text.", rich_help_panel=WORK)
]
InputTokens = Annotated[
    int | None,
    typer.Option("--input-tokens", metavar="N", help="Length of random prompts.", rich_help_panel=WORK),
]
PrefixTokens = Annotated[
    int | None,
    typer.Option("--prefix-tokens", metavar="N", help="Length of shared prefixes.", rich_help_panel=WORK),
]
Groups = Annotated[
    int, typer.Option("--groups", metavar="N", help="Number of shared prefixes.", rich_help_panel=WORK)
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="N", help="Seed of prompts and arrivals.", rich_help_panel=WORK)
]
Api = Annotated[
    str,
    typer.Option(
        "--api",
        metavar="chat|generate",
        help="Who applies the chat template: the server or we.",
        rich_help_panel=WORK,
    ),
]
Tokenizer = Annotated[
    str | None,
    typer.Option(
        "--tokenizer", metavar="DIR", help="The target's folder, for --api generate.", rich_help_panel=WORK
    ),
]
Concurrency = Annotated[
    list[str] | None,
    typer.Option(
        "--concurrency",
        "-c",
        metavar="LIST",
        help="Requests in flight: 1,8,32; repeatable.",
        rich_help_panel=LOAD,
    ),
]
Rate = Annotated[
    list[str] | None,
    typer.Option(
        "--rate", metavar="LIST", help="Requests per second (Poisson): 2,8; repeatable.", rich_help_panel=LOAD
    ),
]
WarmUp = Annotated[
    int | None,
    typer.Option("--warm-up", metavar="N", help="Requests before the clock starts.", rich_help_panel=LOAD),
]
FlushCache = Annotated[
    bool | None,
    typer.Option(
        "--flush-cache/--keep-cache", help="Empty the prefix cache before each run.", rich_help_panel=LOAD
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        metavar="N",
        help="Processes of the load generator; default: one for each 1024 requests in flight.",
        rich_help_panel=LOAD,
    ),
]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Limit of one request.", rich_help_panel=LOAD)
]
MaxDuration = Annotated[
    float | None,
    typer.Option("--max-duration", metavar="SECONDS", help="Limit of one run.", rich_help_panel=LOAD),
]
Sweep = Annotated[
    list[str] | None,
    typer.Option(
        "--sweep",
        metavar="KEY=A,B",
        help="block_size=8,16, concurrency=1,8, or a profile path; repeatable.",
        rich_help_panel=LOAD,
    ),
]
Baseline = Annotated[
    bool,
    typer.Option(
        "--baseline/--no-baseline", help="In a sweep, also run without speculation.", rich_help_panel=LOAD
    ),
]
Speculation = Annotated[
    bool | None,
    typer.Option("--speculation/--no-speculation", help="Only with, or only without.", rich_help_panel=LOAD),
]
MinAcceptLength = Annotated[
    float | None,
    typer.Option("--min-accept-length", metavar="X", help="Exit 1 below it.", rich_help_panel=JUDGE),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against", metavar="FILE", help="An earlier result to compare with.", rich_help_panel=JUDGE
    ),
]
MaxRegression = Annotated[
    float | None,
    typer.Option(
        "--max-regression",
        metavar="SHARE",
        help="Exit 1 when worse than --against by more: 0.05.",
        rich_help_panel=JUDGE,
    ),
]
Expect = Annotated[
    bool,
    typer.Option(
        "--expect/--no-expect", help="Exit 1 below the profile's published figures.", rich_help_panel=JUDGE
    ),
]
ExpectTolerance = Annotated[
    float,
    typer.Option("--expect-tolerance", metavar="SHARE", help="What may be missing.", rich_help_panel=JUDGE),
]
SloTtftMs = Annotated[
    float | None,
    typer.Option(
        "--slo-ttft-ms", metavar="MS", help="Goodput counts requests within it.", rich_help_panel=JUDGE
    ),
]
SloTpotMs = Annotated[
    float | None,
    typer.Option(
        "--slo-tpot-ms", metavar="MS", help="Goodput counts requests within it.", rich_help_panel=JUDGE
    ),
]
SloE2eMs = Annotated[
    float | None,
    typer.Option(
        "--slo-e2e-ms", metavar="MS", help="Goodput counts requests within it.", rich_help_panel=JUDGE
    ),
]
AllowSlowClient = Annotated[
    bool,
    typer.Option(
        "--allow-slow-client", help="Give figures that the client may have spoilt.", rich_help_panel=JUDGE
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="The result file; runs are appended.", rich_help_panel=FILES
    ),
]
Records = Annotated[
    bool, typer.Option("--records", help="Keep every request in the result file.", rich_help_panel=FILES)
]
Csv = Annotated[
    str | None, typer.Option("--csv", metavar="FILE", help="The table as CSV.", rich_help_panel=FILES)
]
Jsonl = Annotated[
    str | None,
    typer.Option(
        "--jsonl", metavar="FILE", help="The runs as bench_serving writes them.", rich_help_panel=FILES
    ),
]
