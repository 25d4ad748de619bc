"""GSM8K: 1,319 grade-school problems, as the published DFlash harness asks them."""

from __future__ import annotations

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, chosen, field, user

NAME = "gsm8k"
SUMMARY = "grade-school mathematics, step by step"
SOURCE = DataSource(
    repo="openai/gsm8k",
    revision="740312add88f781978c0658806c59bc2815b9866",
    path="main/test-00000-of-00001.parquet",
    rows=1319,
    license="MIT",
)
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 4096
NEEDS_TOKEN_SIZE = False
BOXED = "Please reason step by step, and put your final answer within \\boxed{}."


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    return tuple(
        BenchPrompt(id=f"{NAME}/{index}", messages=user(f"{field(record, 'question')}\n{BOXED}"))
        for index, record in chosen(records, options)
    )
