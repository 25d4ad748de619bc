"""What the process that reports a run holds of each chunk: counted bytes, from the workers' messages to the figures."""

from __future__ import annotations

import json
import tracemalloc
from array import array

from dflashctl.bench import summarise
from dflashctl.bench.merge import LoadParts, merged
from dflashctl.bench.wire import FIELDS, batches

REQUESTS, CHUNKS, TOKENS = 40, 5000, 5
KEPT_BYTES = 12  # a gap and a token count, 4 bytes each, and what a record takes
PEAK_BYTES = 40


def rows():
    """A long run with 5 tokens a chunk, as a load process makes its rows."""
    gaps = array("f", (0.01 + n % 97 * 1e-5 for n in range(CHUNKS - 1)))
    for index in range(REQUESTS):
        row = dict.fromkeys(FIELDS)
        row |= {
            "index": index, "intended_s": 0.0, "sent_s": 0.0, "first_s": 0.1, "last_s": 60.0, "end_s": 60.0,
            "completion_tokens": CHUNKS * TOKENS, "tokens_first_chunk": TOKENS, "chunks": CHUNKS,
            "reasoning_chunks": 0, "coalesced_chunks": 0, "gaps_s": gaps.tobytes(), "histogram": [],
            "chunk_tokens": array("I", [TOKENS] * CHUNKS).tobytes(), "finish_reason": "stop",
        }  # fmt: skip
        yield list(row.values())


def test_a_chunk_costs_the_parent_some_bytes_and_a_token_none():
    chunks = REQUESTS * CHUNKS
    tracemalloc.start()
    try:
        parts = LoadParts()
        for batch in batches(rows()):
            parts.add(0, json.loads(json.dumps({"records": batch})))
        records = merged(parts, [str(n) for n in range(REQUESTS)], first_index=0).records
        del parts
        kept, _ = tracemalloc.get_traced_memory()
        summary = summarise(records, None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert summary.chunks == chunks
    assert summary.itl_exact
    assert kept < KEPT_BYTES * chunks
    assert peak < PEAK_BYTES * chunks
