"""What a run asks for: options first, then what was published, then the workload's own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dflashctl.cli.lists import numbers, whole_numbers
from dflashctl.commands.bench_prompts import Gathered
from dflashctl.commands.bench_servers import variants
from dflashctl.commands.bench_settings import loads, output_limit, prompts_unlike, workloads_of
from dflashctl.commands.bench_verdict import with_speedups
from dflashctl.commands.instance_profile import same_server
from dflashctl.commands.live_server import LiveServer
from dflashctl.core.bench_options import BenchOptions, parse_sweep
from dflashctl.core.errors import UsageProblem
from dflashctl.core.instance import Served
from dflashctl.core.options import PlanRequest
from dflashctl.core.profile import Expect, Figure, Sampling
from dflashctl.core.report import to_json
from dflashctl.core.started_from import StartedFrom, dump
from dflashctl.env import Env
from dflashctl.workloads import WORKLOADS
from tests.bench_report.made_runs import record, run

NOTHING = parse_sweep(())
EXPECT = Expect(
    sampling=Sampling(max_tokens=4096),
    figures=(
        Figure(metric="accept_length", dataset="gsm8k", value=5.3, concurrency=1),
        Figure(metric="output_tokens_per_s", dataset="gsm8k", value=2015.0, concurrency=32),
    ),
)


def names_of(options: BenchOptions) -> list[str]:
    return [name for name, _ in workloads_of(options, None)]


@pytest.mark.parametrize(
    ("options", "sweep", "expect", "wanted"),
    [
        (BenchOptions(), (), None, ((1, None),)),
        (BenchOptions(), (), EXPECT, ((1, None), (32, None))),
        (BenchOptions(concurrency=(4,)), (), EXPECT, ((4, None),)),
        (BenchOptions(concurrency=(4,)), ("concurrency=1,8",), EXPECT, ((4, None), (1, None), (8, None))),
        (BenchOptions(concurrency=(1, 4)), ("concurrency=4,8",), None, ((1, None), (4, None), (8, None))),
        (BenchOptions(rates=(5.0,)), ("rate=5,50",), None, ((None, 5.0), (None, 50.0))),
        (BenchOptions(rates=(5.0,)), ("concurrency=2",), None, ((2, None), (None, 5.0))),
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
    assert names_of(BenchOptions()) == ["tiny-math"]
    assert names_of(BenchOptions(workloads=("mbpp",))) == ["mbpp"]
    assert names_of(BenchOptions(prompts="a/mine.jsonl")) == ["mine"]


@pytest.mark.parametrize("sets", [("mbpp",), ("tiny-math", "gsm8k")], ids=str)
def test_a_file_and_sets_are_all_measured_each_as_what_it_is(sets):
    own, *others = workloads_of(BenchOptions(prompts="a/mine.jsonl", workloads=sets, count=3), None)
    assert (own[0], own[1].prompts) == ("mine", "a/mine.jsonl")
    assert [(name, asked.prompts, asked.count) for name, asked in others] == [
        (name, None, 3) for name in sets
    ]


@pytest.mark.parametrize("prompts", [None, "a/mine.jsonl"], ids=str)
def test_a_name_of_no_workload_is_refused_before_another_is_measured(prompts):
    with pytest.raises(UsageProblem, match="no workload 'gsm8'"):
        workloads_of(BenchOptions(prompts=prompts, workloads=("mbpp", "gsm8")), None)


def started(options, *, base=PlanRequest(profile="p"), switchable=False):  # noqa: B008 - frozen
    found = variants(options, parse_sweep(options.sweep), base, switchable=switchable)
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
        started(BenchOptions(url="http://x", sweep=("block_size=8",)), base=None)


NONE = "speculative.algorithm=NONE"


@pytest.mark.parametrize(
    ("sweep", "baselines"),
    [
        (("block_size=8,16",), [((NONE,), ())]),
        (("speculative.block_size=8,16",), [((NONE,), ())]),
        (
            ("memory.max_running_requests=1,8",),
            [
                (("memory.max_running_requests=1", NONE), (("memory.max_running_requests", "1"),)),
                (("memory.max_running_requests=8", NONE), (("memory.max_running_requests", "8"),)),
            ],
        ),
        (
            ("block_size=8,16", "memory.page_size=1,64", "speculative.draft_window_size=128,256"),
            [
                (("memory.page_size=1", NONE), (("memory.page_size", "1"),)),
                (("memory.page_size=64", NONE), (("memory.page_size", "64"),)),
            ],
        ),
    ],
)
def test_the_baseline_has_every_setting_of_its_variant_but_speculation_s_own(sweep, baselines):
    options = BenchOptions(profile="p", sweep=sweep)
    found = variants(options, parse_sweep(sweep), PlanRequest(profile="p"), switchable=False)
    plain = [v for v in found if v.speculation is False]
    assert [(v.start.sets, v.overrides) for v in plain] == baselines
    assert found[-len(plain) :] == tuple(plain)


ASKED = PlanRequest(
    profile="p", sets=("memory.max_running_requests=1", "speculative.draft_window_size=9"), block_size=8
)


def test_other_servers_of_an_instance_keep_what_it_was_started_with():
    options = BenchOptions(name="p", sweep=("block_size=4,16",))
    four, sixteen, plain = variants(options, parse_sweep(options.sweep), ASKED, switchable=False)
    assert [(v.start.block_size, v.start.sets) for v in (four, sixteen)] == [
        (4, ASKED.sets),
        (16, ASKED.sets),
    ]
    assert (plain.start.block_size, plain.start.sets) == (None, ("memory.max_running_requests=1", NONE))
    loads_only = BenchOptions(name="p", sweep=("concurrency=1,8",))
    _, beside = variants(loads_only, parse_sweep(loads_only.sweep), ASKED, switchable=False)
    assert beside.start == plain.start


def in_load(rate: float, **changes):
    return run([record(i, step_s=rate) for i in range(8)], **changes)


ONE, EIGHT = (("memory.max_running_requests", value) for value in "18")


@pytest.mark.parametrize(
    ("setting", "baseline", "found"),
    [
        ({}, {}, True),
        ({"overrides": (ONE,)}, {"overrides": (ONE,)}, True),
        ({"overrides": (ONE, ("speculative.draft_window_size", "9"))}, {"overrides": (ONE,)}, True),
        ({"overrides": (ONE,)}, {"overrides": (EIGHT,)}, False),
        ({"overrides": (ONE,)}, {}, False),
        ({"cache_flushed": True}, {}, False),
        ({"concurrency": 8}, {}, False),
        ({"prompts_hash": "x"}, {}, False),
    ],
)
def test_a_speed_up_is_that_of_speculation_alone(setting, baseline, found):
    spec, _ = with_speedups([in_load(0.01, **setting), in_load(0.02, speculation=False, **baseline)])
    assert (spec.speedup is not None) is found


SERVED = Served(
    profile="tiny-cpu", engine="reference", engine_version="1", runtime="process", host="127.0.0.1", port=1,
    served_model_name="m", fingerprint="f",
)  # fmt: skip


class Started:
    """Instances of which only the record of their start is read."""

    def __init__(self, text: str | None) -> None:
        self.text = text

    def read_text(self, name: str, file: str) -> str | None:
        return self.text


@pytest.mark.parametrize(
    ("change", "named", "sets"),
    [
        (lambda text: text, None, ASKED.sets),
        (lambda text: text, "tiny-cpu", ASKED.sets),
        (lambda text: text, "tiny-gpu", ()),
        (lambda _: None, None, ()),
        (lambda _: "{}", None, ()),
        (
            lambda text: text.replace("max_running_requests=1", "").replace('"sets": [', '"sets": [1, '),
            None,
            (),
        ),
    ],
)
def test_a_server_like_an_instance(tmp_path, change, named, sets):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    path = str(env.profiles.find("tiny-cpu").path.absolute())
    asked = replace(ASKED, profile="tiny-cpu", name="mine", port=30001, dry_run=True)
    text = dump(StartedFrom(request=to_json(asked), profile_path=path, digest="", fingerprint=""))
    server = LiveServer(url="http://x", name="mine", served=SERVED)
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, instances=Started(change(text)))
    found = same_server(env, server, named)
    assert found.profile == (named or "tiny-cpu")
    assert (found.sets, found.name, found.port, found.dry_run) == (sets, None, None, False)


def test_a_server_that_is_not_ours_needs_a_profile(tmp_path):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    assert same_server(env, LiveServer(url="http://x"), None) is None
    assert same_server(env, LiveServer(url="http://x"), "p") == PlanRequest(profile="p")


def test_values_of_one_axis_are_put_together():
    found = parse_sweep(
        (
            "block_size=8",
            "block_size=4,8",
            "concurrency=1",
            "concurrency=2",
            "rate=1",
            "rates=2",
            "a.b=1",
            "a.b=2",
        )
    )
    assert found.block_sizes == (8, 4)
    assert (found.concurrency, found.rates) == ((1, 2), (1.0, 2.0))
    assert found.servers == (("a.b", ("1", "2")),)


@pytest.mark.parametrize("file", ["pf/tiny-math.jsonl", "gsm8k.txt", "mt-bench", "a/humaneval-long.json"])
def test_a_file_is_never_taken_for_a_known_set(file):
    (name,) = names_of(BenchOptions(prompts=file))
    assert name not in WORKLOADS
    options = BenchOptions(prompts=file)
    assert output_limit(options, EXPECT, "gsm8k") is None
    assert loads(options, NOTHING, EXPECT, "gsm8k") == ((1, None),)
    (told,) = prompts_unlike(options, gathered("gsm8k"), None)
    assert file in told


def gathered(name: str) -> Gathered:
    return Gathered(name=name, prompts=(), warm_up=(), max_tokens=4096, hash="")


@pytest.mark.parametrize(
    ("options", "name", "context", "words"),
    [
        (BenchOptions(), "humaneval-long", None, None),
        (BenchOptions(prefix_tokens=65536), "humaneval-long", None, None),
        (BenchOptions(prefix_tokens=1000), "humaneval-long", None, "--prefix-tokens 1000, published 65536"),
        (BenchOptions(prefix_tokens=1000), "gsm8k", None, None),
        (BenchOptions(input_tokens=7), "random", None, "--input-tokens 7"),
        (BenchOptions(), "longbench-v2", 262144, None),
        (BenchOptions(), "longbench-v2", 32768, "prompts of more than 28672 tokens"),
        (BenchOptions(), "gsm8k", 32768, None),
    ],
)
def test_prompts_of_another_length_are_unlike_the_published_ones(options, name, context, words):
    found = prompts_unlike(options, gathered(name), context)
    assert (words is None and found == ()) or words in found[0]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [((), ()), (("1,8",), (1, 8)), (("1", "8"), (1, 8)), (("1,2", "8"), (1, 2, 8)), (("2", "2"), (2, 2))],
    ids=str,
)
def test_an_option_that_is_repeated_goes_on_with_its_list(words, wanted):
    assert whole_numbers("--concurrency", words) == wanted
    assert numbers("--rate", words) == tuple(map(float, wanted))
