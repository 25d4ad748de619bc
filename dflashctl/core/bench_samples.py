"""From the records of a run: arrays for its file, groups of prompts, and what may have spoiled it."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING

from dflashctl.core import latency
from dflashctl.core.accept import accept_length
from dflashctl.core.bench_gpus import held_back
from dflashctl.core.bench_runs import Bucket
from dflashctl.core.bench_setting import Samples
from dflashctl.core.degenerate import find_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.bench_record import RequestRecord
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.bench_setting import GpuReading
    from dflashctl.core.workload import BenchPrompt

LOOKED_AT = 2000  # characters at the end of a text in which a loop would show
_DRIFT = 0.2
_TIMED = frozenset({"ttft_ms", "tpot_ms", "e2e_ms", "per_request_tokens_per_s"})


def without_timings(summary: RunSummary) -> RunSummary:
    """The summary with every latency and rate, which a slow client spoils, left unknown; counts and accept length stay."""
    kept = {name: value for name, value in summary.intervals.items() if name.partition(".")[0] not in _TIMED}
    return replace(
        summary,
        ttft_ms=None,
        tpot_ms=None,
        itl_ms=None,
        icl_ms=None,
        e2e_ms=None,
        output_tokens_per_s=None,
        steady_output_tokens_per_s=None,
        requests_per_s=None,
        per_request_tokens_per_s=None,
        inverse_tpot_tokens_per_s=None,
        goodput=None,
        intervals=kept,
    )


def samples_of(records: Sequence[RequestRecord], *, latencies: bool = True) -> Samples:
    """The arrays that comparing and plotting need; failed requests leave None in each."""

    def milliseconds(value: float | None) -> float | None:
        return None if value is None else round(value * 1e3, 4)

    done = [record if record.ok else None for record in records]
    timed = done if latencies else [None] * len(done)
    return Samples(
        ids=tuple(record.id for record in records),
        completion_tokens=tuple(r.completion_tokens if r else None for r in done),
        verify_steps=tuple(r.spec.verify_steps if r and r.spec else None for r in done),
        ttft_ms=tuple(milliseconds(latency.ttft_s(r)) if r else None for r in timed),
        tpot_ms=tuple(milliseconds(latency.tpot_s(r)) if r else None for r in timed),
        e2e_ms=tuple(milliseconds(latency.e2e_s(r)) if r else None for r in timed),
        tokens_per_s=tuple(latency.decode_tokens_per_s(r) if r else None for r in timed),
    )


def buckets_of(
    prompts: Sequence[BenchPrompt], records: Sequence[RequestRecord], seed: int
) -> tuple[Bucket, ...]:
    of = {prompt.id: prompt.bucket for prompt in prompts if prompt.bucket}
    names = list(dict.fromkeys(of.values()))
    groups = {name: [r for r in records if of.get(r.id) == name] for name in names if name}
    return tuple(
        Bucket(name=name, requests=len(group), accept_length=accept_length(group, seed=seed))
        for name, group in groups.items()
    )


def looping_answers(records: Sequence[RequestRecord]) -> tuple[str, ...]:
    """Answers that fell into a loop: they make accept length and rate look good."""
    return tuple(
        r.id for r in records if r.ok and find_loop(f"{r.reasoning_text or ''}{r.text or ''}"[-LOOKED_AT:])
    )


def run_warnings(
    records: Sequence[RequestRecord],
    mismatches: int,
    looping: tuple[str, ...],
    readings: Sequence[GpuReading],
    in_flight: int,
) -> tuple[str, ...]:
    """Sentences on what a reader must know of a run; `in_flight` requests at most ran at once."""
    told = []
    if looping:
        told.append(
            f"{len(looping)} answers fell into a loop, which inflates accept length: {', '.join(looping[:3])}"
        )
    empty = sum(r.ok and not r.text and r.finish_reason == "length" for r in records)
    if empty > len(records) / 5:
        told.append(
            f"{empty} of {len(records)} answers used up max_tokens before they began: raise --max-tokens"
        )
    drift = _drift(records, in_flight)
    if drift is not None and abs(drift) > _DRIFT:
        told.append(
            f"the second half decoded {drift:+.0%} against the first: warm up longer, or look at the clocks"
        )
    if mismatches:
        told.append(
            f"{mismatches} sampled chunks were read differently by the fast reader and by a JSON parser"
        )
    reasons = held_back(readings)
    if reasons:
        told.append(f"GPU clocks were held back meanwhile: {', '.join(reasons)}")
    return tuple(told)


def _drift(records: Sequence[RequestRecord], in_flight: int) -> float | None:
    """How much faster the later half of the requests decoded than the earlier one, as a share.

    The first and the last ones ran beside fewer others, so they are left out.
    """
    edge = in_flight if in_flight > 1 else 0
    inner = records[edge : len(records) - edge]
    rates = [rate for r in inner if r.ok and (rate := latency.decode_tokens_per_s(r)) is not None]
    half = len(rates) // 2
    if half < 8:  # noqa: PLR2004 - fewer say nothing
        return None
    return fmean(rates[half:]) / fmean(rates[:half]) - 1
