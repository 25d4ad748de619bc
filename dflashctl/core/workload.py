"""Workload: prompts to measure with, and where their records come from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

from dflashctl.core.errors import CheckFailed

Record = Mapping[str, object]
# (role, text), or an OpenAI message as it was given where these two are not all of it.
Message = tuple[str, str] | Mapping[str, object]
# The published harness shuffles with this seed (dflash 0.1.0).
HARNESS_SEED = 42


class BadRecord(CheckFailed):
    """A record that is not what its data set promises."""


@dataclass(frozen=True, kw_only=True)
class DataSource:
    """One file of a Hugging Face data set at one commit; `rows` is how many records it must have."""

    repo: str
    revision: str
    path: str
    rows: int
    license: str

    @property
    def label(self) -> str:
        return f"{self.repo}@{self.revision[:12]}:{self.path}"


@dataclass(frozen=True, kw_only=True)
class BenchPrompt:
    """`messages` are what is said at first; `follow_ups` are user turns sent after each answer in turn.

    `bucket` names a group that is also reported on its own, `max_tokens` overrides the run's limit.
    """

    id: str
    messages: tuple[Message, ...]
    follow_ups: tuple[str, ...] = ()
    bucket: str | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, kw_only=True)
class WorkloadOptions:
    """`count` None takes all. The sizes are in tokens; `characters_per_token` is how the server counted a sample.

    `nonce` makes cold prefixes new to a cache; the same nonce makes the same prompts again.
    """

    count: int | None = None
    seed: int = HARNESS_SEED
    input_tokens: int | None = None
    prefix_tokens: int | None = None
    groups: int = 1
    context_tokens: int | None = None
    output_tokens: int = 1024
    characters_per_token: float = 3.5
    nonce: str = ""


class Workload(Protocol):
    """What a workload's module offers.

    `SOURCE` is None for prompts that are made here; `DEFAULT_COUNT` None means the whole set. `prompts` gives at
    most options.count of them in the order in which they are sent: asking for more gives the same ones first.
    `NEEDS_TOKEN_SIZE` says that lengths matter, so that characters_per_token should be measured.
    """

    @property
    def NAME(self) -> str: ...  # noqa: N802 - a module's constant

    @property
    def SUMMARY(self) -> str: ...  # noqa: N802

    @property
    def SOURCE(self) -> DataSource | None: ...  # noqa: N802

    @property
    def DEFAULT_COUNT(self) -> int | None: ...  # noqa: N802

    @property
    def MAX_TOKENS(self) -> int: ...  # noqa: N802

    @property
    def NEEDS_TOKEN_SIZE(self) -> bool: ...  # noqa: N802

    def prompts(
        self, records: tuple[Record, ...], options: WorkloadOptions, /
    ) -> tuple[BenchPrompt, ...]: ...


def user(content: str) -> tuple[tuple[str, str], ...]:
    """A conversation of one user message."""
    return (("user", content),)


def as_openai(message: Message) -> Mapping[str, object]:
    """The message as the chat interface takes it."""
    return message if isinstance(message, Mapping) else {"role": message[0], "content": message[1]}


def text_of(message: Message) -> str:
    """All that a message says: its text, or the texts of its parts, and its tool calls as JSON."""
    if not isinstance(message, Mapping):
        return message[1]
    content, calls = message.get("content"), message.get("tool_calls")
    parts = content if isinstance(content, list) else []
    texts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in parts]
    return "\n".join((*texts, *((json.dumps(calls, ensure_ascii=False),) if calls else ())))


def field(record: Record, name: str) -> str:
    """A text field; BadRecord names it when it is missing or something else."""
    value = record.get(name)
    if not isinstance(value, str):
        raise BadRecord(f"a record has no text field {name!r}: it has {', '.join(sorted(record))}")
    return value


def shuffled(size: int, seed: int) -> list[int]:
    """Indices in the published harness's order: random.Random(seed).shuffle(range(size))."""
    indices = list(range(size))
    Random(seed).shuffle(indices)  # noqa: S311 - a repeatable order is the point
    return indices


def chosen(records: tuple[Record, ...], options: WorkloadOptions) -> tuple[tuple[int, Record], ...]:
    """(index in the set, record) of those to send, never one twice."""
    order = shuffled(len(records), options.seed)
    return tuple((index, records[index]) for index in order[: options.count])


def prompts_hash(prompts: tuple[BenchPrompt, ...]) -> str:
    """A hash of all ids and texts: equal hashes mean that the same was asked."""
    essence = [[p.id, p.messages, p.follow_ups, p.max_tokens] for p in prompts]
    return hashlib.sha256(json.dumps(essence).encode()).hexdigest()[:16]
