"""The lines for readers of bench_serving: all of its keys, its units, and nothing made up."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dflashctl.commands.bench_verdict import report_of
from dflashctl.core.bench_options import BenchOptions
from dflashctl.core.bench_peaks import most_at_once, most_tokens_in_a_second
from dflashctl.core.bench_record import RequestError
from dflashctl.core.bench_samples import samples_of
from dflashctl.core.bench_serving_lines import to_bench_serving
from dflashctl.core.report import to_json
from dflashctl.env import Env
from tests.bench_report.made_runs import record, result, run, run_file, spread
from tests.benchmarks.load_generator import read_bench_serving

FIGURES = ("mean", "median", "std", "p90", "p95", "p99")
# sglang/benchmark/serving.py of 0.5.23: `result` and `result_details`
SUMMARY = {
    *(
        "tag",
        "backend",
        "dataset_name",
        "request_rate",
        "max_concurrency",
        "sharegpt_output_len",
        "random_input_len",
    ),
    *(
        "random_output_len",
        "random_range_ratio",
        "server_info",
        "duration",
        "completed",
        "total_input_tokens",
    ),
    *("total_input_text_tokens", "total_input_vision_tokens", "total_output_tokens"),
    *("total_output_tokens_retokenized", "request_throughput", "input_throughput", "output_throughput"),
    *(
        "total_throughput",
        "concurrency",
        "accept_length",
        "max_output_tokens_per_s",
        "max_concurrent_requests",
    ),
    *(f"{figure}_{name}_ms" for figure in FIGURES for name in ("e2e_latency", "ttft", "tpot", "itl")),
}
DETAILS = {"input_lens", "output_lens", "ttfts", "itls", "generated_texts", "errors"}
RECORDS = tuple(record(i, steps=4 + i % 3, step_s=0.01 * (1 + i % 2)) for i in range(8))


def line_of(made, records=None) -> dict:
    (line,) = to_bench_serving(run_file(made), [records]).splitlines()
    return json.loads(line)


def test_every_key_of_the_summary_is_there_with_and_without_records():
    plain, whole = line_of(run(RECORDS)), line_of(run(RECORDS), RECORDS)
    assert set(plain) >= SUMMARY
    assert set(whole) == SUMMARY | DETAILS
    assert {name for name in SUMMARY if whole[name] is None} == {
        *("sharegpt_output_len", "random_input_len", "random_output_len", "random_range_ratio"),
        "total_output_tokens_retokenized",
    }
    assert {name for name in SUMMARY if plain[name] is None != whole[name]} >= {
        *("std_itl_ms", "max_output_tokens_per_s", "max_concurrent_requests"),
    }


def test_units_and_sums():
    found = line_of(spread(20))
    assert found["backend"] == "sglang-oai-chat"
    assert found["completed"] == 40
    assert found["total_output_tokens"] == 40 * 120
    assert found["total_input_tokens"] == found["total_input_text_tokens"] == 40 * 50
    assert found["mean_ttft_ms"] == pytest.approx(100.0)
    assert found["ttfts"][0] == pytest.approx(0.1)
    assert found["output_throughput"] == pytest.approx(found["total_output_tokens"] / found["duration"])
    assert found["server_info"] == {"tp_size": "8"}


def test_details_are_one_value_a_request():
    failed = replace(RECORDS[1], error=RequestError.STATUS, status=429, error_detail="busy", text=None)
    thought = replace(RECORDS[0], reasoning_text="hm, ")
    records = (thought, failed, *RECORDS[2:])
    found = line_of(run(records), records)
    assert {len(found[name]) for name in DETAILS} == {8}
    assert found["errors"][:2] == ["", "HTTP 429: busy"]
    assert found["generated_texts"][:2] == ["hm, done", None]
    assert found["input_lens"][0] == 50
    assert found["itls"][0] == pytest.approx([0.01] * 4)
    assert found["std_itl_ms"] > 0


def test_a_reader_of_bench_serving_takes_them(tmp_path):
    env = Env(cwd=tmp_path, environ={"HOME": str(tmp_path)})
    measured = replace(run(RECORDS), records=RECORDS)
    options = BenchOptions(jsonl="r.jsonl", records=True)
    report_of(env, options, result(measured), tmp_path / "r.json", None)
    found = read_bench_serving(tmp_path / "r.jsonl")
    assert found["done"] == 8
    assert found["ttft"][0] == pytest.approx(100.0)
    assert found["itl"][0] in (pytest.approx(10.0), pytest.approx(20.0))


def test_texts_stand_in_the_lines_and_never_in_the_result_file():
    document = to_json(replace(run(RECORDS), records=RECORDS))
    assert [kept["text"] for kept in document["records"]] == [None] * 8
    assert line_of(run(RECORDS), RECORDS)["generated_texts"] == ["done"] * 8


def test_what_is_withheld_stays_so():
    hidden = replace(
        run(RECORDS),
        samples=samples_of(RECORDS, latencies=False),
        summary=replace(run(RECORDS).summary, itl_ms=None),
        withheld=("the loop lagged",),
    )
    found = line_of(hidden, RECORDS)
    assert found["concurrency"] is found["std_itl_ms"] is None
    assert found["ttfts"] == [None] * 8
    assert found["itls"] == [[]] * 8
    assert line_of(run(RECORDS))["concurrency"] > 0


def at(sent_s, end_s, **changes):
    made = record(0)
    return replace(made, intended_s=sent_s, sent_s=sent_s, end_s=end_s, **changes)


@pytest.mark.parametrize(
    ("spans", "most"),
    [
        ([], None),
        ([(0, 1)], 1),
        ([(0, 1), (1, 2)], 1),
        ([(0, 2), (1, 3), (2, 4)], 2),
        ([(0, 9), (1, 2), (3, 4), (3.5, 5)], 3),
    ],
)
def test_most_requests_at_once(spans, most):
    records = [at(*span) for span in spans]
    assert most_at_once(records) == most
    assert most_at_once([*records, at(0, 9, error=RequestError.RESET)]) == most


@pytest.mark.parametrize(
    ("chunks", "tokens", "most"),
    [
        ((8, 8, 8), 24, 16),  # at 0.5, 0.9 and 1.3 s
        ((8, 0, 20), 28, 20),
        ((), 24, 16),  # equal shares where the server does not count by chunk
        ((), None, None),
    ],
)
def test_most_tokens_in_a_second(chunks, tokens, most):
    one = at(10.0, 11.3, first_s=10.5, gaps_s=(0.4, 0.4), chunk_tokens=chunks, completion_tokens=tokens)
    assert most_tokens_in_a_second([one]) == most
    assert most_tokens_in_a_second([one, one]) == (2 * most if most else None)
    assert most_tokens_in_a_second([replace(one, error=RequestError.CLOSED)]) is None
