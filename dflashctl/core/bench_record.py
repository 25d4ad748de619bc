"""What one request of a load run measured, and the span in which the run took place."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ABOVE_BLOCK = "accept_above_block"


class RequestError(str, Enum):
    """Why a request does not count as done."""

    CONNECT = "connect"  # no connection
    STATUS = "status"  # an HTTP status other than 200
    STREAM = "stream"  # an error object inside the stream
    CLOSED = "closed"  # the server ended the connection before the answer was whole
    RESET = "reset"  # the connection was reset
    STALL = "stall"  # no byte for LoadSpec.stall_s in mid-answer
    TIMEOUT = "timeout"  # not done within LoadSpec.timeout_s
    PROTOCOL = "protocol"  # bytes that are not HTTP or not the announced event format
    EMPTY = "empty"  # a whole answer without a single token
    ABORTED = "aborted"  # we stopped


@dataclass(frozen=True, kw_only=True)
class SpecCounts:
    """The engine's exact counts of one request; `histogram[k]` = verify steps that kept k drafts."""

    verify_steps: int
    accepted_drafts: int | None = None
    proposed_drafts: int | None = None
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RequestRecord:
    """Times are seconds on the client's monotonic clock, one clock for all processes of a run.

    intended_s: when the load plan wanted it sent (equals sent_s in a closed loop).
    sent_s: just before the first byte was written to an open connection.
    first_s, last_s: arrival of the first and last delta with content, reasoning or a tool call.
    end_s: arrival of the last byte of the answer.
    gaps_s[i]: time from content chunk i to i + 1; 0.0 where both came in one read.
    chunk_tokens[i]: tokens of content chunk i as the server counts them, empty when it does not say.
    cpu/lag of the client are not here but in ClientHealth.
    """

    id: str
    intended_s: float
    sent_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    end_s: float | None = None
    status: int | None = None
    error: RequestError | None = None
    error_detail: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    spec: SpecCounts | None = None
    tokens_first_chunk: int | None = None
    chunks: int = 0
    reasoning_chunks: int = 0
    coalesced_chunks: int = 0
    gaps_s: Sequence[float] = ()
    chunk_tokens: Sequence[int] = ()
    finish_reason: str | None = None
    text: str | None = None
    reasoning_text: str | None = None
    connect_s: float | None = None
    process: int = 0

    @property
    def ok(self) -> bool:
        return self.error is None

    def without_texts(self) -> RequestRecord:
        return replace(self, text=None, reasoning_text=None)


@dataclass(frozen=True, kw_only=True)
class Window:
    """A span of the run on the records' clock."""

    start_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        return self.end_s - self.start_s


def error_name(record: RequestRecord) -> str | None:
    """The name under which a failed request is counted: "HTTP 429" says more than "status"; None when it is done."""
    if record.error is None:
        return None
    known = record.error is RequestError.STATUS and record.status is not None
    return f"HTTP {record.status}" if known else record.error.value


def doubts(record: RequestRecord, block_size: int | None = None) -> tuple[str, ...]:
    """What in the server's counts of a finished request contradicts itself; figures made of it are suspect.

    usage_below_chunks: fewer tokens than content chunks, though a chunk holds at least one.
    usage_differs: the final count is below the running one. steps_above_tokens: more verify steps than
    tokens, though each step yields at least one. accept_above_block: more tokens than that many verify steps
    of `block_size` tokens and prefill's one can make; None for an unknown block size. (Accepted drafts may exceed
    the tokens: the engine counts those behind a stop too.)
    """
    tokens, spec = record.completion_tokens, record.spec
    if tokens is None:
        return ("no_token_count",)
    running = sum(record.chunk_tokens)
    found = {
        "usage_below_chunks": tokens < record.chunks,
        "usage_differs": bool(record.chunk_tokens) and running > tokens,
        "steps_above_tokens": spec is not None and spec.verify_steps > tokens,
        ABOVE_BLOCK: bool(
            spec and spec.verify_steps and block_size and tokens - 1 > spec.verify_steps * block_size
        ),
    }
    return tuple(name for name, wrong in found.items() if wrong)
