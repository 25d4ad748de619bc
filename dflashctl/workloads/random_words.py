"""random: prompts of a given length from random sentences, each one different; for capacity, not accept length."""

from __future__ import annotations

from random import Random

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions, user
from dflashctl.reference.problems import problem

NAME = "random"
SUMMARY = "prompts of --input-tokens, each different; for capacity only"
SOURCE: DataSource | None = None
DEFAULT_COUNT = 64
MAX_TOKENS = 256
NEEDS_TOKEN_SIZE = True
INPUT_TOKENS = 1024


def prompts(_records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    characters = int((options.input_tokens or INPUT_TOKENS) * options.characters_per_token)
    return tuple(
        BenchPrompt(
            id=f"{NAME}/{index}",
            messages=user(sentences(f"{options.nonce}{options.seed}/{index}", characters)),
        )
        for index in range(options.count or DEFAULT_COUNT)
    )


def sentences(key: str, characters: int) -> str:
    """Text of that many characters, decided by `key` alone; it starts differently for each key."""
    source = Random(key)  # noqa: S311 - repeatable, not secret
    parts, size = [f"Note {source.randrange(10**8):08d}."], 14
    while size < characters:
        parts.append(problem(source)[0])
        size += len(parts[-1]) + 1
    return " ".join(parts)[:characters]
