"""`bench`: accept length, latency and throughput of one server or of a sweep, beside the published figures."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from dflashctl.commands.bench_measure import Target, count_source, measure
from dflashctl.commands.bench_prompts import gather, template_of, tokenizer_folder
from dflashctl.commands.bench_provenance import provenance
from dflashctl.commands.bench_save import Kept, existing, read_document, save
from dflashctl.commands.bench_servers import (
    Variant,
    base_request,
    profile_name,
    require_plans,
    serving,
    variants,
)
from dflashctl.commands.bench_settings import loads, output_limit, setting_of, warm_ups, workloads_of
from dflashctl.commands.bench_simulated import refuse_here, refuse_running
from dflashctl.commands.bench_verdict import refuse_file_clashes, report_of, with_speedups
from dflashctl.commands.live_server import api_key, live_server
from dflashctl.commands.output_files import require_outputs
from dflashctl.commands.server_life import ended, life_of
from dflashctl.core.bench_options import BenchOptions, Sweep, parse_sweep
from dflashctl.core.bench_ranges import require_ranges
from dflashctl.core.bench_runs import BenchResult, BenchRun, Unfinished
from dflashctl.core.errors import DflashError, Interrupted, UsageProblem
from dflashctl.core.expectations import expectations
from dflashctl.core.exposure import KEY_FILE_VARIABLE, KEY_VARIABLE
from dflashctl.core.report import ErrorInfo, Outcome
from dflashctl.core.run_view import RunFile, read_run_file
from dflashctl.proofs.runner import ProofSettings, connect
from dflashctl.supervise import stops_interrupt

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.bench_setting import Provenance
    from dflashctl.core.profile import Profile
    from dflashctl.core.report import Report
    from dflashctl.env import Env
    from dflashctl.proofs.client import Client

DEFAULT_WORKLOAD = "tiny-math"


@dataclass
class _Session:
    """What one call has gathered so far; written to the file after each run."""

    path: Path
    before: Kept
    runs: list[BenchRun]
    sessions: list[Provenance]
    sent: set[tuple[str, str]] = field(default_factory=set)  # (server, prompts) of what its cache may know

    def result(self) -> BenchResult:
        return BenchResult(runs=tuple(self.runs), sessions=tuple(self.sessions), path=str(self.path))

    def keep(self, run: BenchRun) -> None:
        self.runs.append(replace(run, session=len(self.sessions) - 1))
        save(self.path, self.result(), self.before)


def bench(env: Env, options: BenchOptions) -> Report:
    """All runs asked for: exit 1 below a floor, a published figure or an earlier result; 3 when nothing is up.

    Ctrl-C, TERM and HUP end it with 130; servers of its own are stopped, and finished requests kept.
    """
    require_ranges(options)
    with stops_interrupt():
        return _bench(env, options)


def _bench(env: Env, options: BenchOptions) -> Report:
    sweep = parse_sweep(options.sweep)
    against = _against(env, options)
    word = profile_name(env, options)
    profile = env.profiles.load(word).profile if word is not None else None
    session = _open(env, options)
    asked = variants(options, sweep, base_request(env, options), switchable=_switchable(env, options))
    require_plans(env, asked)
    if any(variant.start is None for variant in asked):
        refuse_running(live_server(env, options.name, options.url))
    try:
        for variant in asked:
            with serving(env, options, variant) as server:
                _measure_server(env, options, sweep, variant, server, profile, session)
    except (Interrupted, KeyboardInterrupt) as stop:
        return _interrupted(env, options, session, against, stop)
    return _report(env, options, session, against)


def _report(env: Env, options: BenchOptions, session: _Session, against: RunFile | None) -> Report:
    session.runs[:] = with_speedups(session.runs)
    save(session.path, session.result(), session.before)
    return report_of(env, options, session.result(), session.path, against)


def _interrupted(
    env: Env, options: BenchOptions, session: _Session, against: RunFile | None, stop: BaseException
) -> Report:
    """Exit 130 with the runs so far, the one that was cut short marked as such; Interrupted when there is none."""
    if not session.runs:
        raise Interrupted(
            "the benchmark was interrupted before a request was done", hint="nothing was written"
        ) from stop
    error = Interrupted("the benchmark was interrupted", hint=f"what was done is in {session.path}")
    return replace(
        _report(env, options, session, against),
        outcome=Outcome.FAILED,
        exit_code=error.exit_code,
        errors=(ErrorInfo.of(error),),
    )


def _open(env: Env, options: BenchOptions) -> _Session:
    """Refuse what would make the figures worthless or lose them, before anything is measured."""
    refuse_here(env)
    if options.prompts == "-":
        raise UsageProblem("--prompts reads a file, not standard input", hint="--prompts FILE")
    if options.gates.max_regression is not None and options.gates.against is None:
        raise UsageProblem("--max-regression needs the result to compare with", hint="--against FILE")
    stamp = datetime.fromtimestamp(env.clock.wall(), tz=timezone.utc).strftime("%Y%m%d-%H%M%S")
    output = options.output or f"dflashctl-bench-{stamp}.json"
    refuse_file_clashes(env, options, output)
    path = env.cwd / output
    exports = (("--csv", options.csv), ("--jsonl", options.jsonl))
    require_outputs(
        [("--output", path), *((option, env.cwd / file) for option, file in exports if file is not None)]
    )
    return _Session(path=path, before=existing(path), runs=[], sessions=[])


def _against(env: Env, options: BenchOptions) -> RunFile | None:
    path = options.gates.against
    return None if path is None else read_run_file(read_document(env.cwd / path), path)


def _switchable(env: Env, options: BenchOptions) -> bool:
    """Whether the running server can leave speculation out of a request; False when we start our own."""
    if options.profile is not None and options.name is None and options.url is None:
        return False
    return _connect(env, options, live_server(env, options.name, options.url)).facts.per_request_speculation


def _connect(env: Env, options: BenchOptions, server: LiveServer) -> Client:
    settings = ProofSettings(api_key=api_key(env, options.api_key_env), timeout_s=options.timeout_s)
    return connect(env.web, env.clock, server.url, settings)


def _measure_server(
    env: Env,
    options: BenchOptions,
    sweep: Sweep,
    variant: Variant,
    server: LiveServer,
    profile: Profile | None,
    session: _Session,
) -> None:
    client = _connect(env, options, server)
    _check_speculation(variant, client)
    target = _target(env, options, client, own=options.url is None)
    session.sessions.append(provenance(env, server, client, _template_hash(env, options, client)))
    expect = profile.expect if profile else None
    for name, asked in workloads_of(options, profile):
        planned = loads(asked, sweep, expect, name)
        most = max(c or 1 for c, _ in planned)
        gathered = gather(env, asked, name, client, most, output_limit(asked, expect, name))
        setting = setting_of(asked, gathered, client, variant, expect)
        setting = replace(setting, plain=variant.plain)
        if target.counts is None and setting.speculation is not False:
            target = replace(target, counts=count_source(asked, target, setting))
        for turn, (concurrency, rate) in enumerate(planned):
            if turn and gathered.cold:
                gathered = gather(env, asked, name, client, most, output_limit(asked, expect, name))
            known = (client.facts.base_url, gathered.hash)
            process = life_of(env, server)
            run = measure(
                env,
                asked,
                target,
                replace(
                    setting,
                    concurrency=concurrency,
                    request_rate=rate,
                    warm_up=warm_ups(
                        asked,
                        concurrency,
                        setting.prompts,
                        made_to_length=setting.characters_per_token is not None,
                    ),
                ),
                gathered,
                repeated=known in session.sent and not gathered.cold,
            )
            session.sent.add(known)
            stopped = (
                run.unfinished is Unfinished.INTERRUPTED
            )  # long answers were cut off: nothing to judge by
            judged = (
                expectations(expect, run.summary, run.setting, asked.gates.expect_tolerance, run.samples)
                if expect and not stopped
                else ()
            )
            session.keep(
                replace(
                    run,
                    expectations=judged,
                    instance=server.name,
                    server_end=None if stopped else ended(env, server, process, run.summary),
                )
            )
            if stopped:
                raise Interrupted("the benchmark was interrupted")


def _check_speculation(variant: Variant, client: Client) -> None:
    """Refuse a label that the server would not live up to."""
    wanted, facts = variant.speculation, client.facts
    if wanted is True and facts.speculates is False:
        raise UsageProblem(
            f"the server at {facts.base_url} does not speculate", hint="leave --speculation out"
        )
    if wanted is False and facts.speculates is not False and not facts.per_request_speculation:
        raise UsageProblem(
            f"the server at {facts.base_url} cannot leave speculation out of a request",
            hint="dflashctl bench --profile NAME --no-speculation starts one without",
        )


def _target(env: Env, options: BenchOptions, client: Client, *, own: bool) -> Target:
    variable = options.api_key_env or KEY_VARIABLE
    named = bool(env.environ.get(variable))
    file = None if named else env.environ.get(KEY_FILE_VARIABLE)
    return Target(
        client=client,
        counts=None,
        key_env=variable if named else None,
        key_file=env.cwd / file if file else None,
        template=template_of(env, options, client),
        flush_cache=own if options.flush_cache is None else options.flush_cache,
    )


def _template_hash(env: Env, options: BenchOptions, client: Client) -> str | None:
    """The hash of the template wherever it is applied, None when it is not on this host."""
    try:
        return env.chat_templates.load(tokenizer_folder(env, options, client)).hash
    except DflashError:
        return None
