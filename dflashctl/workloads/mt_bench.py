"""MT-Bench: 80 conversations of two turns; both are sent, each turn counting as one.

The published harness sends only the first turn to servers and all turns to other back ends; the cards average
over turns.
"""

from __future__ import annotations

from dflashctl.core.workload import BadRecord, BenchPrompt, DataSource, Record, WorkloadOptions, chosen, user

NAME = "mt-bench"
SUMMARY = "conversations of two turns, both sent"
SOURCE = DataSource(
    repo="HuggingFaceH4/mt_bench_prompts",
    revision="e3a795c5e9a82ee40611c416b8a7786c73198991",
    path="raw/question.jsonl",
    rows=80,
    license="Apache-2.0",
)
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 4096
NEEDS_TOKEN_SIZE = False


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    return tuple(_prompt(index, record) for index, record in chosen(records, options))


def _prompt(index: int, record: Record) -> BenchPrompt:
    turns = record.get("prompt")
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, str) for turn in turns):
        raise BadRecord(f"record {index} has no list of turns in 'prompt'")
    first, *rest = turns
    return BenchPrompt(id=f"{NAME}/{index}", messages=user(first), follow_ups=tuple(rest))
