"""The ranges of `bench`'s numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.ranges import Range

if TYPE_CHECKING:
    from dflashctl.core.bench_options import BenchOptions

MAX_REGRESSION = Range(option="--max-regression", least=0)


def require_ranges(options: BenchOptions) -> None:
    """UsageProblem names the first option that is out of its range, and the range."""
    gates = options.gates
    whole = (
        ("--count", options.count, 0),  # 0: the whole set
        ("--max-tokens", options.max_tokens, 1),
        ("--input-tokens", options.input_tokens, 1),
        ("--prefix-tokens", options.prefix_tokens, 1),
        ("--groups", options.groups, 1),
        ("--warm-up", options.warm_up, 0),
        ("--processes", options.processes, 1),
        *(("--concurrency", concurrency, 1) for concurrency in options.concurrency),
    )
    above_zero = (
        *(("--rate", rate) for rate in options.rates),
        ("--timeout", options.timeout_s),
        ("--max-duration", options.max_duration_s),
        ("--min-accept-length", gates.min_accept_length),
        ("--slo-ttft-ms", options.slo_ttft_ms),
        ("--slo-tpot-ms", options.slo_tpot_ms),
        ("--slo-e2e-ms", options.slo_e2e_ms),
    )
    for option, count, least in whole:
        Range(option=option, least=least).require(count)
    for option, amount in above_zero:
        Range(option=option, least=0, above=True).require(amount)
    Range(option="--temperature", least=0).require(options.temperature)
    Range(option="--top-p", least=0, most=1, above=True).require(options.top_p)
    MAX_REGRESSION.require(gates.max_regression)
    Range(option="--expect-tolerance", least=0, most=1).require(gates.expect_tolerance)
