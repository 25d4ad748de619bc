"""What is counted of one answer while its events are read: times, gaps, tokens, the engine's counts."""

from __future__ import annotations

from array import array
from itertools import chain
from operator import sub
from typing import TYPE_CHECKING

from dflashctl.bench.kept_text import KeptText

if TYPE_CHECKING:
    from collections.abc import Sequence


class Tally:
    """Plain mutable counters; core.bench_record.RequestRecord explains them. Imports nothing heavy."""

    __slots__ = (
        "accepted_drafts", "cached_tokens", "chunk_tokens", "chunks", "coalesced_chunks", "completion_tokens",
        "error", "finish_reason", "first_s", "gaps_s", "histogram", "last_s", "mismatches", "prompt_tokens",
        "proposed_drafts", "reasoning", "reasoning_chunks", "reasoning_tokens", "seen_tokens", "text",
        "verify_steps",
    )  # fmt: skip

    def __init__(self, *, keep_text: bool = False, text_end: int | None = None) -> None:
        self.first_s: float | None = None
        self.last_s = 0.0
        self.chunks = 0
        self.reasoning_chunks = 0
        self.coalesced_chunks = 0
        self.gaps_s = array("f")
        self.chunk_tokens = array("I")
        self.seen_tokens = 0  # by the last chunk that told
        self.prompt_tokens: int | None = None
        self.completion_tokens: int | None = None
        self.reasoning_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.verify_steps: int | None = None
        self.accepted_drafts: int | None = None
        self.proposed_drafts: int | None = None
        self.histogram: list[int] = []
        self.finish_reason: str | None = None
        self.error: tuple[str, str] | None = None  # (RequestError value, detail)
        self.mismatches = 0
        self.text = KeptText(text_end) if keep_text else None
        self.reasoning = KeptText(text_end) if keep_text else None

    def chunk(self, at_s: float) -> None:
        """A content chunk came at `at_s`."""
        if self.chunks:
            gap = at_s - self.last_s
            self.gaps_s.append(gap)
            if gap == 0.0:
                self.coalesced_chunks += 1
        else:
            self.first_s = at_s
        self.chunks += 1
        self.last_s = at_s

    def chunks_together(self, at_s: float, count: int) -> None:
        """`count` content chunks came in one read."""
        self.chunk(at_s)
        self.gaps_s.frombytes(bytes(4 * (count - 1)))  # zeros
        self.coalesced_chunks += count - 1
        self.chunks += count - 1

    def tokens_so_far(self, count: int) -> None:
        """The server's running count with this content chunk."""
        self.chunk_tokens.append(max(0, count - self.seen_tokens))
        self.seen_tokens = count

    def running_counts(self, counts: Sequence[int]) -> None:
        """The same with each of some content chunks, one at least."""
        added = list(map(sub, counts, chain((self.seen_tokens,), counts)))
        try:
            self.chunk_tokens.fromlist(added)  # all or none of them
        except OverflowError:  # a count below the one before
            self.chunk_tokens.fromlist([max(0, tokens) for tokens in added])
        self.seen_tokens = counts[-1]

    def usage(self, usage: dict[str, object]) -> None:
        """An OpenAI usage object; the last one of a stream is the final one."""
        self.prompt_tokens = whole_number(usage.get("prompt_tokens"), self.prompt_tokens)
        self.completion_tokens = whole_number(usage.get("completion_tokens"), self.completion_tokens)
        nested = usage.get("completion_tokens_details")
        details = nested if isinstance(nested, dict) else usage
        self.reasoning_tokens = whole_number(details.get("reasoning_tokens"), self.reasoning_tokens)
        prompt = usage.get("prompt_tokens_details")
        if isinstance(prompt, dict):
            self.cached_tokens = whole_number(prompt.get("cached_tokens"), self.cached_tokens)

    def meta_info(self, meta: dict[str, object]) -> None:
        """SGLang's meta_info of a finished answer; a running one has no spec_verify_ct."""
        for name in ("prompt_tokens", "completion_tokens", "reasoning_tokens", "cached_tokens"):
            setattr(self, name, whole_number(meta.get(name), getattr(self, name)))
        reason = meta.get("finish_reason")
        if isinstance(reason, dict):
            self.finish_reason = str(reason.get("type"))
        self.spec(meta)

    def spec(self, counts: dict[str, object]) -> None:
        """Exact counts under SGLang's names, those before 0.5.21 included."""
        self.verify_steps = whole_number(counts.get("spec_verify_ct"), self.verify_steps)
        self.accepted_drafts = whole_number(
            counts.get("spec_num_correct_drafts", counts.get("spec_accepted_drafts")), self.accepted_drafts
        )
        self.proposed_drafts = whole_number(
            counts.get("spec_num_proposed_drafts", counts.get("spec_proposed_drafts")), self.proposed_drafts
        )
        histogram = counts.get("spec_correct_drafts_histogram", counts.get("spec_accept_histogram"))
        if isinstance(histogram, list) and all(isinstance(n, int) for n in histogram):
            self.histogram = histogram

    def fail(self, kind: str, detail: str) -> None:
        """Note the first error; later ones are its consequences."""
        if self.error is None:
            self.error = (kind, detail)


def whole_number(value: object, otherwise: int | None) -> int | None:
    """`value` if it is a count, else `otherwise`."""
    return value if type(value) is int and value >= 0 else otherwise  # no bool
