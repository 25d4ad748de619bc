"""What a response says about how its text was made: SGLang's ``meta_info`` and ``spec_tokens_details``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dflashctl.reference.request import Finish
    from dflashctl.reference.sequence import Sequence

WEIGHT_VERSION = "default"


def meta_info(sequence: Sequence, completion_tokens: int, finish: Finish | None) -> dict[str, Any]:
    """Return ``meta_info`` after ``completion_tokens`` tokens; the last one (with ``finish``) has the figures."""
    times = sequence.times
    info: dict[str, Any] = {
        "id": sequence.rid,
        "finish_reason": None if finish is None else finish_reason(finish, completion_tokens),
        "prompt_tokens": len(sequence.request.prompt_ids),
        "weight_version": WEIGHT_VERSION,
        "num_retractions": 0,
        "forward_entry_time": times.started,
        "prefill_finished_time": times.first_token,
        "queue_time": None if times.started is None else times.started - times.received,
        "reasoning_tokens": 0,
        "completion_tokens": completion_tokens,
        "cached_tokens": 0,
        "cached_tokens_details": {"device": 0, "host": 0},
        "dp_rank": None,
    }
    if finish is not None and times.finished is not None:
        info |= {"e2e_latency": times.finished - times.received, **spec_details(sequence)}
        if sequence.verify_count:
            info |= {
                "spec_accepted_drafts": info["spec_num_correct_drafts"],
                "spec_proposed_drafts": info["spec_num_proposed_drafts"],
                "spec_accept_histogram": info["spec_correct_drafts_histogram"],
            }
        info |= {
            "request_received_ts": times.received,
            "api_server_dispatch_finish_ts": times.received,
            "request_finished_ts": times.finished,
            "decode_throughput": _decode_throughput(sequence, completion_tokens),
            "response_sent_to_client_ts": time.time(),
        }
    return info


def spec_details(sequence: Sequence) -> dict[str, Any]:
    """Return the figures of speculation; none without a verify step.

    Accept length is completion_tokens / spec_verify_ct, and the accept rate is right drafts / proposed drafts,
    as SGLang defines them. Drafts beyond the end of the text count as what they were.
    """
    if not sequence.verify_count:
        return {}
    proposed = sequence.proposed_drafts
    return {
        "spec_accept_rate": sequence.correct_drafts / proposed if proposed else 0.0,
        "spec_accept_length": len(sequence.output_ids) / sequence.verify_count,
        "spec_num_correct_drafts": sequence.correct_drafts,
        "spec_num_proposed_drafts": proposed,
        "spec_verify_ct": sequence.verify_count,
        "spec_correct_drafts_histogram": list(sequence.correct_drafts_histogram),
    }


def finish_reason(finish: Finish, completion_tokens: int) -> dict[str, Any]:
    """Return the native API's reason for the end of a generation."""
    if finish.kind == "length":
        return {"type": "length", "length": completion_tokens}
    if finish.kind == "abort":
        return {"type": "abort", "message": finish.matched}
    return {"type": "stop", "matched": finish.matched}


def _decode_throughput(sequence: Sequence, completion_tokens: int) -> float | None:
    times = sequence.times
    if times.first_token is None or times.last_token is None or times.last_token <= times.first_token:
        return None
    return (completion_tokens - 1) / (times.last_token - times.first_token)
