"""No measured prompt is known to the server's prefix cache, or the run says so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dflashctl.commands.bench import bench
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_record import RequestRecord
from dflashctl.core.cold_cache import cache_warnings, shared_share
from dflashctl.env import Env
from dflashctl.workloads.humaneval import question
from tests.fakes.caching_server import CachingServer
from tests.fakes.caching_server import tokens as count_of
from tests.fakes.fake_datasets import FakeDataSets

DATA = Path(__file__).parent.parent / "workloads" / "data"


def records(name: str) -> tuple[dict, ...]:
    return tuple(
        json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    )


def told(run):
    """What a run says of the cache; a busy machine may have it say more."""
    return [warning for warning in run.warnings if "cache" in warning]


@pytest.fixture
def server():
    with CachingServer() as running:
        yield running


@pytest.fixture
def env(tmp_path):
    (tmp_path / "mine.jsonl").write_text(
        "\n".join(json.dumps({"prompt": f"{n} {'word ' * n}"}) for n in range(1, 9))
    )
    sets = FakeDataSets(
        openai_humaneval=records("humaneval"),
        mt_bench_prompts=tuple({"prompt": [f"{n} {'first ' * n}", f"{n} second"]} for n in range(5)),
        gsm8k=records("gsm8k"),
    )
    return Env(cwd=tmp_path, environ={"HOME": str(tmp_path)}, datasets=sets)


SETS = [
    {"workloads": ("tiny-math",)},
    {"workloads": ("tiny-math",), "count": 0},
    {"workloads": ("tiny-math",), "count": 3},
    {"workloads": ("gsm8k",)},
    {"workloads": ("gsm8k",), "count": 4, "warm_up": 3},
    {"workloads": ("mt-bench",)},
    {"workloads": ("humaneval-long",), "prefix_tokens": 500},
    {"workloads": ("random",), "count": 5, "input_tokens": 80},
    {"workloads": ("shared-prefix",), "count": 6, "groups": 2, "input_tokens": 80},
    {"prompts": "mine.jsonl"},
    {"prompts": "mine.jsonl", "count": 3},
]


@pytest.mark.parametrize("chosen", SETS, ids=str)
@pytest.mark.parametrize("load", [{"concurrency": (4,)}, {"rates": (200.0,)}], ids=["closed", "open"])
def test_no_prompt_is_sent_twice_in_a_run(env, server, chosen, load):
    report = bench(env, BenchOptions(url=server.url, output="x.json", **load, **chosen))
    assert len(set(server.prompts)) == len(server.prompts)
    assert not [f for f in report.findings if "prefix cache" in f.summary]


@pytest.mark.parametrize(
    "load", [{"concurrency": (1, 2, 4)}, {"concurrency": (2,), "rates": (100.0,)}], ids=str
)
def test_a_load_that_repeats_the_prompts_of_another_one_says_so(env, server, load):
    first, *others = bench(env, BenchOptions(url=server.url, count=12, output="x.json", **load)).data.runs
    assert not told(first)
    assert all("the server's prefix cache had" in told(run)[0] for run in others)
    (again,) = bench(env, BenchOptions(url=server.url, count=12, output="y.json")).data.runs
    assert "--flush-cache" in told(again)[0]


def test_a_server_that_says_nothing_of_its_cache_is_doubted(env):
    with CachingServer(reports=False) as server:
        first, second = bench(
            env, BenchOptions(url=server.url, concurrency=(1, 2), output="x.json")
        ).data.runs
    assert not told(first)
    assert "it does not say what its prefix cache kept" in told(second)[0]


def test_a_cache_that_is_emptied_knows_nothing(env, server):
    """Emptied after the warm-up and the probe, so that nothing of them is left either."""
    options = BenchOptions(url=server.url, count=12, concurrency=(1, 4), flush_cache=True, output="x.json")
    runs = bench(env, options).data.runs
    assert server.flushes == 2
    assert [(told(run), run.setting.cache_flushed) for run in runs] == [([], True)] * 2


@pytest.mark.parametrize(
    "chosen", [{"workloads": ("shared-prefix",), "count": 8}, {"workloads": ("humaneval-long",)}]
)
def test_what_is_made_for_each_run_is_never_known(env, server, chosen):
    options = BenchOptions(url=server.url, concurrency=(1, 2), prefix_tokens=400, output="x.json", **chosen)
    for run in bench(env, options).data.runs:
        assert not told(run)


@pytest.mark.parametrize("size", [600, 4000])
def test_a_long_prefix_of_code_is_as_long_as_it_is_said_to_be(env, server, size):
    """Its own text is counted: code has more tokens for its length than prose."""
    options = BenchOptions(url=server.url, workloads=("humaneval-long",), prefix_tokens=size, output="x.json")
    (run,) = bench(env, options).data.runs
    questions = [len(count_of(question(record))) for record in records("humaneval")]
    prefix = (run.summary.prompt_tokens - sum(questions)) / len(questions)
    assert prefix == pytest.approx(size, rel=0.1)


def served(*pairs: tuple[int, int | None]) -> list[RequestRecord]:
    return [RequestRecord(id="x", intended_s=0.0, prompt_tokens=p, cached_tokens=c) for p, c in pairs]


@pytest.mark.parametrize(
    ("found", "texts", "warns"),
    [
        pytest.param(served((100, None), (200, None)), ["a", "b"], False, id="not told"),
        pytest.param(served((100, 0), (200, 0)), ["a", "b"], False, id="none"),
        pytest.param(served((100, 0), (60, 40), (80, 42)), ["a", "b"], False, id="the template's head"),
        pytest.param(served((100, 99), (100, 99)), ["a", "b"], True, id="all of it, equally long"),
        pytest.param(served((40, 39), (100, 99), (300, 299)), ["a", "b"], True, id="all of it"),
        pytest.param(served((1000, 0), (1000, 20), (1000, 999)), ["a", "b"], True, id="one in three"),
        pytest.param(
            served((1000, 0), (1000, 900)), ["x" * 90 + "a" * 10, "x" * 90 + "b" * 10], False, id="shared"
        ),
    ],
)
def test_a_warm_run_is_told_from_a_cold_one(found, texts, warns):
    assert bool(cache_warnings(found, texts, repeated=False, says_nothing=True)) is warns


@pytest.mark.parametrize(
    ("texts", "share"),
    [
        ([], 0.0),
        (["abc"], 0.0),
        (["abc", "xyz"], 0.0),
        (["abcd", "abxy"], 0.5),
        (["same", "same"], 1.0),
        (["ab", "ab12", "ab123456"], (2 + 4 + 4) / 14),
        (["", "a"], 0.0),
    ],
)
def test_what_texts_have_in_common(texts, share):
    assert shared_share(texts) == pytest.approx(share)
