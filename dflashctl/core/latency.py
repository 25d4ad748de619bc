"""The latency and rate definitions of one request; docs/measuring.md prints the same formulas."""

from __future__ import annotations

from itertools import islice, repeat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.bench_record import RequestRecord

DEFINITIONS = {
    "ttft_ms": "first delta with content, reasoning or a tool call - intended send time",
    "tpot_ms": "(last token - first token) / (completion tokens - 1), tokens as counted by the server",
    "itl_ms": "gap between chunks spread over the tokens of the later chunk, one sample a token",
    "icl_ms": "gap between content chunks as received, one sample a chunk",
    "e2e_ms": "last token - intended send time (whole answers: last byte)",
    "per_request_tokens_per_s": "tokens of the chunks after the first / (last token - first token)",
    "output_tokens_per_s": "sum of completion tokens / (last end - first send)",
}


def ttft_s(record: RequestRecord) -> float | None:
    """Time to the first token, from when the load plan wanted the request sent."""
    return None if record.first_s is None else record.first_s - record.intended_s


def e2e_s(record: RequestRecord) -> float | None:
    """Time to the last token; of an answer that was not streamed, to its last byte."""
    end = record.last_s if record.last_s is not None else record.end_s
    return None if end is None else end - record.intended_s


def decode_span_s(record: RequestRecord) -> float | None:
    """Time from the first to the last token."""
    return None if record.first_s is None or record.last_s is None else record.last_s - record.first_s


def tpot_s(record: RequestRecord) -> float | None:
    """(last - first) / (n - 1); None below two tokens or two chunks."""
    span = decode_span_s(record)
    if span is None or not record.completion_tokens or record.completion_tokens < 2 or record.chunks < 2:  # noqa: PLR2004
        return None
    return span / (record.completion_tokens - 1)


def decode_tokens_per_s(record: RequestRecord) -> float | None:
    """Tokens of the chunks after the first / (last - first): what the stream delivered in that span.

    The end-of-sequence token is counted by the server but comes in no chunk, which matters most where chunks are single
    tokens. Where the server does not count tokens by chunk, all are taken but one: prefill makes exactly one.
    """
    span = decode_span_s(record)
    if not span or not record.completion_tokens or record.chunks < 2:  # noqa: PLR2004
        return None
    later = _later_tokens(record)
    return later / span if later > 0 else None


def _later_tokens(record: RequestRecord) -> int:
    if record.chunk_tokens and len(record.chunk_tokens) == record.chunks:
        return sum(islice(record.chunk_tokens, 1, None))
    return (record.completion_tokens or 0) - (record.tokens_first_chunk or 1)


def itl_samples(record: RequestRecord) -> Iterator[tuple[float, int]]:
    """(seconds, how many tokens they stand for) of each chunk after the first: its gap divided by its tokens.

    Where the server does not count tokens by chunk, each gap is spread over the request's mean and stands for one.
    """
    gaps = record.gaps_s
    if record.completion_tokens == record.chunks:
        yield from zip(gaps, repeat(1))
    elif len(record.chunk_tokens) == len(gaps) + 1:
        later = zip(gaps, islice(record.chunk_tokens, 1, None), strict=True)
        yield from ((gap / tokens, tokens) for gap, tokens in later if tokens > 0)
    elif gaps:
        tokens = (record.completion_tokens or record.chunks) - (record.tokens_first_chunk or 1)
        share = tokens / len(gaps)
        if share > 0:
            yield from ((gap / share, 1) for gap in gaps)


def itl_is_exact(record: RequestRecord) -> bool:
    """Whether the tokens of each chunk are known (or trivially one)."""
    return len(record.chunk_tokens) == record.chunks or record.completion_tokens == record.chunks
