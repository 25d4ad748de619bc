"""Runs made up for tests of reading, with every number chosen so that the right answer is known."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from dflashctl.bench import RequestRecord, RunLabels, SpecCounts, summarise
from dflashctl.core.bench_runs import BenchResult, BenchRun
from dflashctl.core.bench_samples import samples_of, without_timings
from dflashctl.core.bench_setting import GpuInfo, GpuReading, ModelIdentity, Provenance, Setting
from dflashctl.core.report import to_json
from dflashctl.core.run_view import RunFile, read_run_file

SETTING = Setting(
    dataset="gsm8k",
    api="chat",
    speculation=True,
    block_size=8,
    concurrency=1,
    request_rate=None,
    max_tokens=4096,
    temperature=0.0,
    top_p=1.0,
    thinking=True,
    ignore_eos=False,
    seed=42,
    prompts=40,
    prompts_hash="abc",
)
TIMED = ("ttft_ms", "tpot_ms", "e2e_ms", "tokens_per_s")
ORIGIN = Provenance(
    started_at="2026-11-30T00:00:00+00:00",
    dflashctl_version="0.1.0",
    url="http://127.0.0.1:30000",
    engine="sglang",
    engine_version="0.5.23",
    target=ModelIdentity(name="moonshotai/Kimi-K3", revision="2" * 40),
    draft=ModelIdentity(name="modal-labs/Kimi-K3-DFlash", revision="c" * 40),
    speculative_algorithm="DFLASH",
    block_size=8,
    flags=(("tp_size", "8"),),
    gpus=(GpuInfo(index=0, name="NVIDIA B300", uuid="GPU-0"),),
    driver="590.44",
)


def record(
    index: int, *, tokens: int = 120, steps: int | None = 20, ttft_s: float = 0.1, step_s: float = 0.01
):
    """A request of `tokens` tokens in `steps` verify steps, each `step_s` long."""
    sent = float(index)
    last = sent + ttft_s + (steps or tokens) * step_s
    return RequestRecord(
        id=f"gsm8k/{index}",
        intended_s=sent,
        sent_s=sent,
        first_s=sent + ttft_s,
        last_s=last,
        end_s=last,
        status=200,
        prompt_tokens=50,
        completion_tokens=tokens,
        tokens_first_chunk=1,
        chunks=(steps or tokens) + 1,
        gaps_s=(step_s,) * (steps or tokens),
        spec=SpecCounts(verify_steps=steps, accepted_drafts=tokens - steps, histogram=(1, steps - 1))
        if steps
        else None,
        finish_reason="stop",
        text="done",
    )


def run(records, **changes) -> BenchRun:
    setting = replace(SETTING, **changes)
    labels = RunLabels(
        dataset=setting.dataset,
        block_size=setting.block_size,
        concurrency=setting.concurrency,
        request_rate=setting.request_rate,
    )
    return BenchRun(
        summary=summarise(records, None, labels=labels),
        setting=setting,
        samples=samples_of(records),
        gpu_readings=tuple(
            GpuReading(at_s=float(i), index=0, power_w=500.0 + i, clock_sm_mhz=1900) for i in range(5)
        ),
    )


def result(*runs: BenchRun, origin: Provenance = ORIGIN) -> BenchResult:
    return BenchResult(runs=runs, sessions=(origin,), path="run.json")


def run_file(*runs: BenchRun, origin: Provenance = ORIGIN, name: str = "run.json") -> RunFile:
    return read_run_file(to_json(result(*runs, origin=origin)), name)


@cache
def spread(steps: int, *, count: int = 40, **changes) -> BenchRun:
    """`count` requests of 120 tokens whose verify steps vary a little around `steps`."""
    return run([record(i, steps=steps + (i % 5) - 2) for i in range(count)], **changes)


def withheld(measured: BenchRun) -> BenchRun:
    """That run as it is kept when the load generator was the bottleneck."""
    return replace(
        measured,
        summary=without_timings(measured.summary),
        samples=replace(measured.samples, **dict.fromkeys(TIMED, (None,) * len(measured.samples.ids))),
        withheld=("the loop lagged",),
    )
