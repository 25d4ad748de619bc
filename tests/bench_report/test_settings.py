"""What a run asks for: options first, then what was published, then the workload's own."""

from __future__ import annotations

import pytest

from dflashctl.commands.bench_servers import variants
from dflashctl.commands.bench_settings import loads, output_limit, workload_names
from dflashctl.core.bench_options import BenchOptions, parse_sweep
from dflashctl.core.errors import UsageProblem
from dflashctl.core.profile import Expect, Figure, Sampling

NOTHING = parse_sweep(())
EXPECT = Expect(
    sampling=Sampling(max_tokens=4096),
    figures=(
        Figure(metric="accept_length", dataset="gsm8k", value=5.3, concurrency=1),
        Figure(metric="output_tokens_per_s", dataset="gsm8k", value=2015.0, concurrency=32),
    ),
)


@pytest.mark.parametrize(
    ("options", "sweep", "expect", "wanted"),
    [
        (BenchOptions(), (), None, ((1, None),)),
        (BenchOptions(), (), EXPECT, ((1, None), (32, None))),
        (BenchOptions(concurrency=(4,)), (), EXPECT, ((4, None),)),
        (BenchOptions(concurrency=(4,)), ("concurrency=1,8",), EXPECT, ((1, None), (8, None))),
        (BenchOptions(rates=(2.0,)), (), EXPECT, ((None, 2.0),)),
        (BenchOptions(rates=(2.0,), concurrency=(4,)), (), None, ((4, None), (None, 2.0))),
    ],
)
def test_loads(options, sweep, expect, wanted):
    assert loads(options, parse_sweep(sweep), expect, "gsm8k") == wanted


def test_the_output_limit_is_the_published_one_only_where_figures_were_published():
    assert output_limit(BenchOptions(), EXPECT, "gsm8k") == 4096
    assert output_limit(BenchOptions(), EXPECT, "random") is None
    assert output_limit(BenchOptions(max_tokens=9), EXPECT, "gsm8k") == 9


def test_the_built_in_set_is_measured_when_nothing_says_otherwise():
    assert workload_names(BenchOptions(), None) == ("tiny-math",)
    assert workload_names(BenchOptions(workloads=("mbpp",)), None) == ("mbpp",)
    assert workload_names(BenchOptions(prompts="a/mine.jsonl"), None) == ("mine",)


def started(options, *, profile="p", switchable=False):
    found = variants(options, parse_sweep(options.sweep), profile, switchable=switchable)
    return [(v.start and (v.start.block_size, v.start.sets), v.speculation) for v in found]


NO_SPEC = ((None, ("speculative.algorithm=NONE",)), False)


@pytest.mark.parametrize(
    ("options", "switchable", "wanted"),
    [
        (BenchOptions(name="p"), False, [(None, None)]),
        (BenchOptions(name="p", sweep=("concurrency=1,8",)), True, [(None, None), (None, False)]),
        (BenchOptions(name="p", sweep=("concurrency=1,8",)), False, [(None, None), NO_SPEC]),
        (BenchOptions(name="p", sweep=("concurrency=1,8",), baseline=False), True, [(None, None)]),
        (BenchOptions(profile="p"), False, [((None, ()), None)]),
        (BenchOptions(profile="p", speculation=False), False, [NO_SPEC]),
        (
            BenchOptions(profile="p", sweep=("block_size=8,16",)),
            False,
            [((8, ()), None), ((16, ()), None), NO_SPEC],
        ),
        (
            BenchOptions(profile="p", sweep=("block_size=8,16",), baseline=False),
            False,
            [((8, ()), None), ((16, ()), None)],
        ),
        (
            BenchOptions(profile="p", sweep=("block_size=8", "memory.page_size=1,64"), baseline=False),
            False,
            [((8, ("memory.page_size=1",)), None), ((8, ("memory.page_size=64",)), None)],
        ),
    ],
)
def test_servers_of_a_sweep(options, switchable, wanted):
    assert started(options, switchable=switchable) == wanted


def test_a_sweep_of_servers_needs_a_profile():
    with pytest.raises(UsageProblem, match="needs a profile"):
        started(BenchOptions(url="http://x", sweep=("block_size=8",)), profile=None)
