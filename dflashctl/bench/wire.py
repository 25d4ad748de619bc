"""The row in which a load process hands a finished request to its parent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dflashctl.bench.flight import Flight
    from dflashctl.bench.kept_text import KeptText

_BATCH = 256
_BATCH_BYTES = 1 << 18  # of arrays and texts: neither side ever holds much of them as text

FIELDS = (
    "index", "intended_s", "sent_s", "first_s", "last_s", "end_s", "status", "error", "prompt_tokens",
    "completion_tokens", "reasoning_tokens", "cached_tokens", "verify_steps", "accepted_drafts", "proposed_drafts",
    "histogram", "tokens_first_chunk", "chunks", "reasoning_chunks", "coalesced_chunks", "gaps_s", "chunk_tokens",
    "finish_reason", "text", "reasoning_text", "connect_s",
)  # fmt: skip
_ARRAYS = tuple(FIELDS.index(name) for name in ("gaps_s", "chunk_tokens"))
_LONG = (*_ARRAYS, FIELDS.index("text"), FIELDS.index("reasoning_text"))


def record_row(flight: Flight) -> list[Any]:
    """The values of FIELDS; arrays as bytes of this machine's layout."""
    tally = flight.answer.tally
    head = flight.answer.head
    counts = tally.chunk_tokens if len(tally.chunk_tokens) == tally.chunks else None
    tokens = tally.completion_tokens
    return [
        flight.index, flight.intended_s, flight.sent_s, tally.first_s, tally.last_s if tally.chunks else None,
        flight.end_s, head.status if head else None, tally.error, tally.prompt_tokens,
        tokens if tokens is not None else (tally.seen_tokens or None), tally.reasoning_tokens, tally.cached_tokens,
        tally.verify_steps, tally.accepted_drafts, tally.proposed_drafts, tally.histogram,
        counts[0] if counts else None, tally.chunks, tally.reasoning_chunks, tally.coalesced_chunks,
        tally.gaps_s.tobytes(), counts.tobytes() if counts else b"", tally.finish_reason,
        _text(tally.text), _text(tally.reasoning), flight.connect_s,
    ]  # fmt: skip


def batches(rows: Iterable[list[Any]]) -> Iterator[list[list[Any]]]:
    """Rows as JSON can hold them, their bytes made hexadecimal text, a bounded number in a batch."""
    batch: list[list[Any]] = []
    size = 0
    for row in rows:
        size += sum([len(row[at] or "") for at in _LONG])
        for at in _ARRAYS:
            row[at] = row[at].hex()
        batch.append(row)
        if len(batch) >= _BATCH or size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _text(kept: KeptText | None) -> str | None:
    """The kept text, None when it was not kept."""
    return None if kept is None else kept.whole()
