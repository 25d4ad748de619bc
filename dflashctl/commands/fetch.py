"""`fetch`: both models of a profile: planned, fetched, proven and locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.ensure_weights import fetched, plan_of, refuse, write_lock
from dflashctl.commands.weights_bring import (
    Errand,
    Tally,
    prove,
    refuse_bad,
    refuse_missing,
    refuse_wrong_lock,
    set_aside_bad,
)
from dflashctl.commands.weights_gather import Gathered, gather
from dflashctl.commands.weights_source import Wishes
from dflashctl.core.errors import DflashError, ExitCode
from dflashctl.core.findings import errors
from dflashctl.core.report import ErrorInfo, Outcome, Report
from dflashctl.core.weights import FetchData, ModelPlan, WeightsPlan, plan_findings
from dflashctl.ports.hub import TokenRules

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.core.fetch_options import FetchOptions
    from dflashctl.env import Env
    from dflashctl.ports.profiles import LoadedProfile


def fetch(env: Env, options: FetchOptions) -> Report:
    """Exit 0 when all is there and proven, 1 when something does not verify, 69 and 78 as everywhere.

    `verify` alone only reads: it writes no lock and fetches nothing.
    """
    loaded = env.profiles.load(options.profile, options.overrides)
    wishes = Wishes(
        rules=TokenRules(descriptor=options.token_fd, send_to=options.send_token_to),
        offline=options.offline,
        renew=not options.verify or options.repair,
        accept_code=options.accept_code,
    )
    try:
        gathered = gather(env, loaded, wishes)
        if options.plan:
            return _only_plan(env, loaded, gathered)
        return _carried_out(env, loaded, gathered, wishes, options)
    finally:
        env.hub.close()


def _only_plan(env: Env, loaded: LoadedProfile, gathered: Gathered) -> Report:
    plan = plan_of(env, gathered)
    findings = (*gathered.findings, *plan_findings(plan))
    data = FetchData(profile=loaded.profile.name, plan=plan, only_plan=True, models=gathered.models)
    refused = bool(errors(findings))
    return Report(
        command="fetch",
        data=data,
        findings=findings,
        outcome=Outcome.FAILED if refused else Outcome.OK,
        exit_code=ExitCode.PERMANENT if refused else ExitCode.OK,
        next_steps=() if refused or not plan.wanted_bytes else (f"dflashctl fetch {loaded.words}",),
    )


def _carried_out(
    env: Env, loaded: LoadedProfile, gathered: Gathered, wishes: Wishes, options: FetchOptions
) -> Report:
    """Every error keeps what is known by then as data, so that scripts see which files are good."""
    tally, models = Tally(), gathered.models
    plan = plan_of(env, gathered)
    try:
        refuse(gathered, None)
        if options.verify or options.repair:
            models = prove(env, models, tally, everything=True)
        if options.verify and not options.repair:
            refuse_bad(env, models, loaded.words, gathered.lock_path)
            refuse_missing(models, loaded.words)
            lock = gathered.lock_path
        else:
            models = _brought(
                env,
                loaded,
                gathered,
                models,
                options,
                Errand(wishes=wishes, tally=tally, files=options.files),
            )
            refuse_bad(env, models, loaded.words, gathered.lock_path)
            lock = write_lock(env, loaded, gathered, models)
    except DflashError as error:
        data = _data(loaded, gathered, models, tally, None, plan=plan)
        return Report(
            command="fetch",
            data=data,
            findings=gathered.findings,
            outcome=Outcome.FAILED,
            exit_code=error.exit_code,
            errors=(ErrorInfo.of(error),),
        )
    data = _data(loaded, gathered, models, tally, lock, plan=plan)
    return Report(
        command="fetch",
        data=data,
        findings=gathered.findings,
        next_steps=(f"dflashctl up {loaded.words}",),
    )


def _brought(
    env: Env,
    loaded: LoadedProfile,
    gathered: Gathered,
    models: tuple[ModelPlan, ...],
    options: FetchOptions,
    errand: Errand,
) -> tuple[ModelPlan, ...]:
    """The models whole and proven; what is bad is replaced only to repair."""
    if options.repair:
        refuse_wrong_lock(env, models, loaded.words, gathered.lock_path)
        models = set_aside_bad(env, models, errand.tally)
    if any(m.wanted for m in models):
        models = fetched(env, loaded, gathered, models, errand)
    else:
        models = prove(env, models, errand.tally)
    return models


def _data(
    loaded: LoadedProfile,
    gathered: Gathered,
    models: tuple[ModelPlan, ...],
    tally: Tally,
    lock: Path | None,
    *,
    plan: WeightsPlan,
) -> FetchData:
    return FetchData(
        profile=loaded.profile.name,
        plan=plan,
        models=models,
        lock=str(lock) if lock else (str(gathered.lock_path) if gathered.lock_path else None),
        transferred_bytes=tally.transferred_bytes,
        transfer_s=tally.transfer_s,
        verified_bytes=tally.verified_bytes,
        verify_s=tally.verify_s,
        set_aside=tuple(tally.set_aside),
        orphans_bytes=tally.orphans_bytes,
        restarts=tally.restarts,
        transport=tally.transport,
    )
