"""Turns whose accept length nobody knows or that cannot be: how many, why, and whether the others' mean can be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.bench_record import ABOVE_BLOCK
from dflashctl.core.bench_remarks import doubt_told
from dflashctl.core.failures import too_many

if TYPE_CHECKING:
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_setting import Samples, Setting

_ELSEWHERE = {
    "chat": "SGLang sends them on a chat from 0.5.13 on (streamed from 0.5.19), on /generate in each release: --api generate",
    "generate": "this /generate does not send them: dflashctl smoke shows whether the server really speculates",
}


def without_counts(samples: Samples) -> tuple[int, int]:
    """(answers without the engine's counts, answers that should have them).

    An answer of one token is prefill's alone: it has no verify step, and lacks nothing.
    """
    steps = [
        found
        for tokens, found in zip(samples.completion_tokens, samples.verify_steps, strict=True)
        if tokens is not None and tokens > 1
    ]
    return sum(not found for found in steps), len(steps)


def count_warnings(setting: Setting, samples: Samples) -> tuple[str, ...]:
    """What a reader must know about missing counts: how many, and what brings them. Of a server that speculates."""
    missing, answers = without_counts(samples)
    if not missing or setting.speculation is False or (missing == answers and setting.speculation is None):
        return ()
    if missing == answers:
        where = _ELSEWHERE["generate" if setting.api == "generate" else "chat"]
        return (f"no accept length: none of {answers} answers has the engine's exact counts; {where}",)
    told = f"{missing} of {answers} answers have no exact counts, accept length is that of the others"
    return (f"{told}: look for servers of several releases or settings behind this address",)


def unjudgeable(summary: RunSummary, samples: Samples | None) -> str | None:
    """Why the accept length that was measured tells nothing, None when it does."""
    if impossible := summary.doubts.get(ABOVE_BLOCK, 0):
        return doubt_told(ABOVE_BLOCK, impossible)
    missing, answers = without_counts(samples) if samples is not None else (0, 0)
    if too_many(missing, answers):
        return f"{missing} of {answers} answers have no exact counts"
    return None
