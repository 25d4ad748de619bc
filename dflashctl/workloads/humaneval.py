"""HumanEval: 164 Python functions to complete, as the published DFlash harness asks for them."""

from __future__ import annotations

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, chosen, field, user

NAME = "humaneval"
SUMMARY = "Python functions to complete"
SOURCE = DataSource(
    repo="openai/openai_humaneval",
    revision="7dce6050a7d6d172f3cc5c32aa97f52fa1a2e544",
    path="openai_humaneval/test-00000-of-00001.parquet",
    rows=164,
    license="MIT",
)
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 4096
NEEDS_TOKEN_SIZE = False


def question(record: Record) -> str:
    """The one user message of a record."""
    return (
        "Write a solution to the following problem and make sure that it passes the tests:\n"
        f"```python\n{field(record, 'prompt')}\n```"
    )


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    return tuple(
        BenchPrompt(id=f"{NAME}/{index}", messages=user(question(record)))
        for index, record in chosen(records, options)
    )
