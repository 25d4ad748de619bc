"""MBPP, sanitized: 257 small Python tasks, asked bare as the published DFlash harness does."""

from __future__ import annotations

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, chosen, field, user

NAME = "mbpp"
SUMMARY = "small Python tasks, the bare sentence"
SOURCE = DataSource(
    repo="google-research-datasets/mbpp",
    revision="4bb6404fdc6cacfda99d4ac4205087b89d32030c",
    path="sanitized/test-00000-of-00001.parquet",
    rows=257,
    license="CC-BY-4.0",
)
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 4096
NEEDS_TOKEN_SIZE = False


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    return tuple(
        BenchPrompt(id=f"{NAME}/{index}", messages=user(field(record, "prompt")))
        for index, record in chosen(records, options)
    )
