"""shared-prefix: groups of prompts that share a long prefix, as agents and chats with one system prompt do."""

from __future__ import annotations

from dflashctl.core.workload import BenchPrompt, DataSource, Record, WorkloadOptions
from dflashctl.workloads.random_words import sentences

NAME = "shared-prefix"
SUMMARY = "prompts in --groups that share --prefix-tokens; for capacity only"
SOURCE: DataSource | None = None
DEFAULT_COUNT = 64
MAX_TOKENS = 256
NEEDS_TOKEN_SIZE = True
PREFIX_TOKENS = 2048
INPUT_TOKENS = 128


def prompts(_records: tuple[Record, ...], options: WorkloadOptions, /) -> tuple[BenchPrompt, ...]:
    """The prefix is the system message; groups take turns, so that one's prefix is not simply the last one."""
    per_token = options.characters_per_token
    key = f"{options.nonce}{options.seed}"
    prefix_size = int((options.prefix_tokens or PREFIX_TOKENS) * per_token)
    own_size = int((options.input_tokens or INPUT_TOKENS) * per_token)
    prefixes = [sentences(f"{key}/prefix/{group}", prefix_size) for group in range(options.groups)]
    return tuple(
        BenchPrompt(
            id=f"{NAME}/{index}",
            messages=(
                ("system", prefixes[index % options.groups]),
                ("user", sentences(f"{key}/own/{index}", own_size)),
            ),
        )
        for index in range(options.count or DEFAULT_COUNT)
    )
