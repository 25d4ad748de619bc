"""LongBench-v2 up to 128k tokens, in buckets of length, with an output length of our own.

No published harness for DFlash covers this set; the prompt is SGLang's, whose 10 output tokens are too few for
an accept length. Length is estimated from characters as the server counts a sample of them.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, field, shuffled, user

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "longbench-v2"
SUMMARY = "questions on texts of up to 128k tokens, by buckets of length"
SOURCE = DataSource(
    repo="THUDM/LongBench-v2",
    revision="2b48e494f2c7a2f0af81aae178e05c7e1dde0fe9",
    path="data.json",
    rows=503,
    license="Apache-2.0",
)
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 512
NEEDS_TOKEN_SIZE = True
BUCKETS = (16 * 1024, 32 * 1024, 64 * 1024, 128 * 1024)


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    """Shuffled by the seed, then taken from the buckets in turn, so that a small count covers every length."""
    buckets: dict[int, list[BenchPrompt]] = {limit: [] for limit in BUCKETS}
    for index in shuffled(len(records), options.seed):
        text = _question(records[index])
        limit = bucket_of(len(text) / options.characters_per_token, options)
        if limit is not None:
            name = f"up to {limit // 1024}k"
            buckets[limit].append(BenchPrompt(id=f"{NAME}/{index}", messages=user(text), bucket=name))
    return tuple(_in_turn(list(buckets.values())))[: options.count]


def bucket_of(tokens: float, options: WorkloadOptions) -> int | None:
    """The bucket's upper limit in tokens, None for a prompt that is too long for the set or the server."""
    room = options.context_tokens - options.output_tokens if options.context_tokens else BUCKETS[-1]
    # The estimate may be 10 % off; a prompt that the server refuses would count as an error.
    if options.context_tokens and tokens * 1.1 > room:
        return None
    return next((limit for limit in BUCKETS if tokens <= limit), None)


def _question(record: Record) -> str:
    choices = "\n".join(f"{letter}. {field(record, f'choice_{letter}')}" for letter in "ABCD")
    return f"{field(record, 'context')}\n\nQuestion: {field(record, 'question')}\n{choices}\nAnswer:"


def _in_turn(buckets: list[list[BenchPrompt]]) -> Iterator[BenchPrompt]:
    for row in zip_longest(*buckets):
        yield from (prompt for prompt in row if prompt is not None)
