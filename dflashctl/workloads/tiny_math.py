"""tiny-math: the 60 word problems on which the tiny pair was recorded; built in, no network."""

from __future__ import annotations

from random import Random

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, user
from dflashctl.reference.problems import problem

NAME = "tiny-math"
SUMMARY = "word problems for the tiny pair, built in"
SOURCE: DataSource | None = None
DEFAULT_COUNT = 60
MAX_TOKENS = 200
NEEDS_TOKEN_SIZE = False
_RECORDED_SEED = 4242


def prompts(_records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    """The recorded 60 in their order, whatever the seed; a larger count goes on with new ones."""
    source = Random(_RECORDED_SEED)  # noqa: S311 - the recorded source
    count = DEFAULT_COUNT if options.count is None else options.count
    return tuple(
        BenchPrompt(id=f"{NAME}/{index}", messages=user(problem(source)[0])) for index in range(count)
    )
