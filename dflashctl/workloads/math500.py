"""MATH-500: competition mathematics, as the published DFlash harness asks it."""

from __future__ import annotations

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, chosen, field, user
from dflashctl.workloads.gsm8k import BOXED

NAME = "math500"
SUMMARY = "competition mathematics, step by step"
SOURCE = DataSource(
    repo="HuggingFaceH4/MATH-500",
    revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
    path="test.jsonl",
    rows=500,
    license="MIT",
)
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 4096
NEEDS_TOKEN_SIZE = False


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    return tuple(
        BenchPrompt(id=f"{NAME}/{index}", messages=user(f"{field(record, 'problem')}\n{BOXED}"))
        for index, record in chosen(records, options)
    )
