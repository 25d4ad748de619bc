"""One load of one server: warm up, send, count, sum up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.bench import (
    CountSource,
    LoadProgress,
    RunLabels,
    Slo,
    judge_client,
    probe_counts,
    processes_for,
    run_load,
    spoiled,
    summarise,
)
from dflashctl.commands.bench_load import measured_load
from dflashctl.commands.bench_prompts import opening, probe_prompt, requests_of, warm_up_requests
from dflashctl.commands.bench_turns import converse
from dflashctl.commands.gpu_watch import GpuWatch
from dflashctl.core.accept import cross_check
from dflashctl.core.bench_counts import count_warnings
from dflashctl.core.bench_result import gaps_of
from dflashctl.core.bench_runs import BenchRun, Unfinished
from dflashctl.core.bench_samples import (
    buckets_of,
    looping_answers,
    run_warnings,
    samples_of,
    without_timings,
)
from dflashctl.core.client_health import worst_of
from dflashctl.core.cold_cache import cache_warnings
from dflashctl.core.errors import CheckFailed, Interrupted
from dflashctl.core.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dflashctl.bench import BenchRequest, LoadResult, LoadSpec, RequestRecord
    from dflashctl.commands.bench_prompts import Gathered
    from dflashctl.commands.bench_turns import Turns
    from dflashctl.core.bench_options import BenchOptions
    from dflashctl.core.bench_setting import Setting
    from dflashctl.core.findings import Finding
    from dflashctl.env import Env
    from dflashctl.ports.chat_template import ChatTemplate
    from dflashctl.proofs.client import Client

_PROBE_TOKENS = 64
_OK = 200


@dataclass(frozen=True, kw_only=True)
class Target:
    """The server under load; `counts` is where its exact counts come from, None when it has none."""

    client: Client
    counts: CountSource | None
    key_env: str | None
    key_file: Path | None
    template: ChatTemplate | None
    flush_cache: bool


def load_spec(options: BenchOptions, target: Target, setting: Setting, cores: int) -> LoadSpec:
    """The load of one run; without --processes there are as many as its requests in flight and the `cores` ask for."""
    in_flight = None if setting.concurrency is None else min(setting.concurrency, setting.prompts)
    processes = options.processes or processes_for(in_flight, cores)
    load = measured_load(
        target.client.facts.base_url,
        None if setting.speculation is False else target.counts,
        concurrency=setting.concurrency,
        rate=setting.request_rate,
    )
    return replace(
        load,
        text_end=None if options.records else load.text_end,
        seed=setting.seed,
        max_duration_s=options.max_duration_s,
        timeout_s=options.timeout_s,
        processes=min(processes, setting.concurrency or processes),
        key_env=target.key_env,
        key_file=target.key_file,
    )


def count_source(options: BenchOptions, target: Target, setting: Setting) -> CountSource | None:
    """Where this server's exact counts come from, by asking it once; CheckFailed when they are simulated."""
    one = replace(setting, concurrency=1, request_rate=None)
    request = requests_of([("probe", probe_prompt(), _PROBE_TOKENS)], one, target.client, target.template)[0]
    return probe_counts(load_spec(replace(options, processes=1), target, one, cores=1), request)


def measure(
    env: Env,
    options: BenchOptions,
    target: Target,
    setting: Setting,
    gathered: Gathered,
    *,
    repeated: bool = False,
) -> BenchRun:
    """One run in that setting; its latencies and rates are withheld when the load generator itself spoiled them.

    `repeated`: this server has had the same prompts before. The cache is emptied after the warm-up, which is there
    for kernels, graphs and clocks, and loses nothing by it.
    """
    spec = load_spec(options, target, setting, env.cores)
    _warm_up(env, spec, warm_up_requests(gathered, setting, target.client, target.template), setting)
    if target.flush_cache:
        setting = replace(setting, cache_flushed=_flush(target.client))
    before = _metrics(target.client)
    with GpuWatch(env, on=target.client.facts.is_local) as watch:
        turns = converse(spec, target.client, target.template, setting, gathered, _notifier(env, setting))
    results, records = turns.results, turns.records
    _require_records(turns, options)
    summary = summarise(
        records,
        None,
        labels=RunLabels(
            dataset=setting.dataset,
            block_size=None if setting.speculation is False else setting.block_size,
            concurrency=setting.concurrency,
            request_rate=setting.request_rate,
        ),
        client=worst_of([result.client for result in results]),
        slo=_slo(options),
        seed=setting.seed,
    )
    judged = tuple(finding for result in results for finding in _client_findings(result, summary.ttft_ms))
    withheld = spoiled(judged) and not (options.allow_slow_client or _embedded(target.client))
    after = _metrics(target.client)
    check = cross_check(before, after, records) if before and after else None
    mismatches = sum(result.scan_mismatches for result in results)
    looping = looping_answers(records)
    samples = samples_of(records, latencies=not withheld)
    return BenchRun(
        summary=without_timings(summary) if withheld else summary,
        setting=setting,
        samples=samples,
        withheld=tuple(finding.summary for finding in judged) if withheld else (),
        unfinished=turns.unfinished,
        buckets=buckets_of(gathered.prompts, records, setting.seed),
        cross_check=check,
        gpu_readings=watch.readings,
        looping=looping,
        judged=sum(record.text is not None for record in records),
        warnings=(
            *_unfinished(turns, setting),
            *_cache(target, setting, gathered, results[0].records, repeated=repeated),
            *(() if withheld else (finding.summary for finding in judged)),
            *count_warnings(setting, samples),
            *run_warnings(records, mismatches, looping, watch.readings, setting.concurrency or 1),
        ),
        records=_kept(records, options) if options.records else None,
    )


def _kept(records: Sequence[RequestRecord], options: BenchOptions) -> tuple[RequestRecord, ...]:
    """Texts only for the lines that hold them: they are most of what a record weighs."""
    return tuple(records if options.jsonl is not None else (r.without_texts() for r in records))


def _require_records(turns: Turns, options: BenchOptions) -> None:
    """Refuse a run without a single request: it has nothing to report."""
    if turns.records:
        return
    if turns.unfinished is Unfinished.INTERRUPTED:
        raise Interrupted("interrupted before the first request was done")
    raise CheckFailed(
        f"no request was sent within --max-duration {options.max_duration_s:g}",
        hint="a longer --max-duration",
    )


def _unfinished(turns: Turns, setting: Setting) -> tuple[str, ...]:
    if turns.unfinished is None:
        return ()
    ended = "it was interrupted" if turns.unfinished is Unfinished.INTERRUPTED else "--max-duration was over"
    return (
        f"unfinished: {ended} after {len(turns.records)} of {setting.turns} requests; figures are of those alone",
    )


def _warm_up(env: Env, spec: LoadSpec, requests: Sequence[BenchRequest], setting: Setting) -> None:
    if requests:
        env.notify(
            Progress(step="warm_up", text=f"{setting.label}: {len(requests)} short requests to warm up")
        )
        in_flight = min(setting.concurrency or len(requests), len(requests))
        calm = replace(
            spec,
            rate=None,
            concurrency=in_flight,
            processes=min(spec.processes, in_flight),
            max_duration_s=None,
        )
        if run_load(calm, requests).interrupted:
            raise Interrupted("interrupted while it warmed up")


def _notifier(env: Env, setting: Setting) -> Callable[[LoadProgress], None]:
    def notify(progress: LoadProgress) -> None:
        accept = progress.accept_length_pooled
        words = [setting.label]
        if accept is not None and setting.speculation is not False:
            words.append(f"accept length {accept:.2f}")
        if progress.elapsed_s > 0 and progress.completion_tokens:
            words.append(f"{progress.completion_tokens / progress.elapsed_s:.0f} tok/s")
        if progress.errors:
            words.append(f"{progress.errors} failed")
        if progress.left_s is not None:
            words.append(f"{progress.left_s:.0f} s left")
        env.notify(
            Progress(
                step="bench",
                text=", ".join(words),
                done=progress.done,
                total=progress.total,
                unit="requests",
                final=progress.done == progress.total,
                rate_per_s=progress.requests_per_s,
                left_s=progress.left_s,
            )
        )

    return notify


def _cache(
    target: Target,
    setting: Setting,
    gathered: Gathered,
    first_turns: Sequence[RequestRecord],
    *,
    repeated: bool,
) -> tuple[str, ...]:
    refused = target.flush_cache and not setting.cache_flushed
    return (
        *(("the server would not empty its prefix cache: is it at work for others?",) if refused else ()),
        *cache_warnings(
            first_turns,
            [opening(prompt) for prompt in gathered.prompts],
            repeated=repeated and not setting.cache_flushed,
            says_nothing=not _embedded(target.client),
        ),
    )


def _embedded(client: Client) -> bool:
    """The embedded engine computes on the client's own cores, so that its latencies are never the server's alone."""
    return (client.facts.version or "").startswith("reference-")


def _flush(client: Client) -> bool:
    """Empty the prefix cache; False when the server would not."""
    return client.get("/flush_cache", timeout_s=30.0).status == _OK


def _metrics(client: Client) -> str | None:
    reply = client.get("/metrics")
    return reply.body.decode(errors="replace") if reply.status == _OK else None


def _slo(options: BenchOptions) -> Slo | None:
    limits = (options.slo_ttft_ms, options.slo_tpot_ms, options.slo_e2e_ms)
    return (
        None if limits == (None, None, None) else Slo(ttft_ms=limits[0], tpot_ms=limits[1], e2e_ms=limits[2])
    )


def _client_findings(result: LoadResult, ttft: object) -> tuple[Finding, ...]:
    median = getattr(ttft, "p50", None)
    gaps = gaps_of(result.records)
    icl = gaps.ranked(len(gaps) // 2) * 1e3 if gaps else None
    return judge_client(result.client, ttft_ms_p50=median, icl_ms_p50=icl)
