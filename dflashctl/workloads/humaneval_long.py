"""HumanEval behind a cold prefix of 64k tokens of other Python code, different for each request.

The published figure names the prefix but no text, so it is made here: the other records' code in an order of
its own for each request, after a line that no cache has seen.
"""

from __future__ import annotations

from random import Random

from dflashctl.core.workload import BenchPrompt, Record, WorkloadOptions, chosen, field, user
from dflashctl.workloads import humaneval
from dflashctl.workloads.humaneval import question

NAME = "humaneval-long"
SUMMARY = "Python functions behind a cold 64k-token prefix, unique per request"
SOURCE = humaneval.SOURCE
DEFAULT_COUNT: int | None = None
MAX_TOKENS = 4096
NEEDS_TOKEN_SIZE = True
PREFIX_TOKENS = 64 * 1024


def prompts(records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    tokens = options.prefix_tokens or PREFIX_TOKENS
    characters = int(tokens * options.characters_per_token)
    return tuple(
        BenchPrompt(
            id=f"{NAME}/{index}",
            messages=user(f"{_prefix(records, index, characters, options)}\n\n{question(record)}"),
        )
        for index, record in chosen(records, options)
    )


def _prefix(records: tuple[Record, ...], own: int, characters: int, options: WorkloadOptions) -> str:
    """`characters` of other records' code, never the asked one's, which would give the answer away."""
    source = Random(f"{options.seed}/{own}")  # noqa: S311 - repeatable, not secret
    others = [index for index in range(len(records)) if index != own]
    parts, size = (
        [f"# Library {options.nonce or options.seed}-{own}: code for reference, not part of the task."],
        0,
    )
    while size < characters and others:
        for index in source.sample(others, len(others)):
            parts.append(_code(records[index]))
            size += len(parts[-1]) + 2
            if size >= characters:
                break
    return "\n\n".join(parts)[:characters]


def _code(record: Record) -> str:
    return f"{field(record, 'prompt')}{field(record, 'canonical_solution')}\n{field(record, 'test')}"
