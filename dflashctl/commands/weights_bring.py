"""Doing for fetch and up: transfer, proof of every byte, and one more try for what came wrong."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.commands.weights_meter import Meter
from dflashctl.core.errors import CheckFailed, Unavailable
from dflashctl.core.model_files import BAD, FileReport, FileStatus
from dflashctl.core.progress import Progress
from dflashctl.ports.hub import Order, Transfer, TransferEvent
from dflashctl.ports.weight_store import HashJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.commands.weights_source import Wishes
    from dflashctl.core.weights import ModelPlan
    from dflashctl.env import Env
    from dflashctl.ports.weight_store import Hasher

# What a file that was replaced on purpose looks like; the other kinds are no weights at all.
_CHANGED = frozenset({FileStatus.WRONG_SIZE, FileStatus.WRONG_CONTENT})


@dataclass(kw_only=True)
class Tally:
    """What one call did, for the report."""

    transferred_bytes: int = 0
    transfer_s: float | None = None
    verified_bytes: int = 0
    verify_s: float | None = None
    set_aside: list[str] = field(default_factory=list)
    orphans_bytes: int = 0
    restarts: int = 0
    transport: str | None = None


@dataclass(frozen=True, kw_only=True)
class Errand:
    """How a fetch is to be done; `files` reports each file on its own."""

    wishes: Wishes
    tally: Tally
    files: bool = False


def bring(env: Env, models: tuple[ModelPlan, ...], errand: Errand) -> tuple[ModelPlan, ...]:
    """All files there; raises what prevents that. What lay there before and is bad is only reported.

    Files are hashed while others still arrive. What arrives wrong is set aside and fetched once more, unless the Hub
    itself says that it is right: then only the lock disagrees, and a third transfer would bring the same.
    """
    tally, began = errand.tally, env.clock.monotonic()
    with ExitStack() as stack:
        for repo in sorted({m.repo for m in models if m.repo and m.wanted}):
            stack.enter_context(env.weight_store.exclusive(env.hub.cache(), repo, _waiting(env, repo)))
        stack.callback(env.hub.close)
        models = looked_again(env, models)
        fresh = frozenset((m.label, f.path) for m in models for f in m.wanted)
        meter = Meter(
            env=env,
            total_bytes=sum(m.wanted_bytes for m in models),
            wanted=tuple((m.repo, len(m.wanted)) for m in models if m.repo and m.wanted),
            files=errand.files,
        )
        models = _round(env, models, errand, meter)
        as_fetched = {(m.label, r.file.path) for m, r in against_lock(env, models)}
        again = frozenset((m.label, r.file.path) for m in models for r in m.bad) & fresh - as_fetched
        if again:
            models = _round(env, set_aside_bad(env, models, tally, only=again), errand, meter)
        for repo in {m.repo for m in models if m.repo and m.writable}:
            tally.orphans_bytes += env.hub.sweep(repo)
    if tally.transferred_bytes and tally.transfer_s:
        env.weight_store.remember_rate(tally.transferred_bytes / tally.transfer_s)
    tally.verify_s = env.clock.monotonic() - began if tally.verified_bytes else None
    return models


def looked_again(env: Env, models: tuple[ModelPlan, ...]) -> tuple[ModelPlan, ...]:
    """The same models as they lie on disk now: another process may have been at work."""
    return tuple(
        replace(m, files=env.weight_store.look(Path(m.folder), tuple(r.file for r in m.files)))
        for m in models
    )


def prove(
    env: Env, models: tuple[ModelPlan, ...], tally: Tally, *, everything: bool = False
) -> tuple[ModelPlan, ...]:
    """Read and hash what is not proven yet, or everything; no network, nothing written to the models."""
    began = env.clock.monotonic()
    jobs = [
        (m, r)
        for m in models
        for r in m.files
        if r.usable and (everything or r.status is FileStatus.UNVERIFIED)
    ]
    if not jobs:
        return models
    meter = Meter(env=env, total_bytes=sum(r.file.size_bytes for _, r in jobs), step="verify")
    with env.weight_store.hasher() as hasher:
        for model, report in jobs:
            hasher.submit(HashJob(path=Path(model.folder) / report.file.path, file=report.file))
        while hasher.pending():
            env.clock.sleep(0.02)
            meter.hashed(hasher.done_bytes())
        proven = _by_path(hasher)
    meter.finish(f"verified {len(jobs)} files")
    tally.verified_bytes += sum(r.file.size_bytes for _, r in jobs)
    tally.verify_s = env.clock.monotonic() - began
    return tuple(_with(m, proven) for m in models)


def against_lock(env: Env, models: tuple[ModelPlan, ...]) -> list[tuple[ModelPlan, FileReport]]:
    """Cached files that are what the Hub sent and not what the lock says: no transfer can mend that."""
    return [
        (m, r)
        for m in models
        if m.locked and m.source == "hub"
        for r in m.files
        if r.status in _CHANGED and env.weight_store.is_as_fetched(Path(m.folder), r)
    ]


def refuse_wrong_lock(env: Env, models: tuple[ModelPlan, ...], profile: str, lock: Path | None) -> None:
    """CheckFailed when lock and Hub disagree about a file; which of them is right is not for us to say."""
    wrong = against_lock(env, models)
    if wrong and lock is not None:
        path = wrong[0][1].file.path
        raise CheckFailed(
            f"the lock is wrong, or the Hub: {len(wrong)} {'file is' if len(wrong) == 1 else 'files are'} as the Hub sent "
            f"{'it' if len(wrong) == 1 else 'them'}, but not as the lock says: {path}",
            hint=f"put the lock back as it was; if the Hub is right, renew it: rm {shlex.quote(str(lock))}, "
            f"then dflashctl fetch {profile}",
            detail="\n".join(
                f"{m.folder}/{r.file.path}: {r.detail or r.status.value}" for m, r in wrong[:20]
            ),
        )


def refuse_bad(env: Env, models: tuple[ModelPlan, ...], profile: str, lock: Path | None) -> None:
    """CheckFailed that names every bad file, what is wrong with it and what to do; `lock` is the file that says so."""
    refuse_wrong_lock(env, models, profile, lock)
    bad = [(m, r) for m in models for r in m.files if r.status in BAD or (not m.writable and not r.usable)]
    if not bad:
        return
    listed = "\n".join(f"{m.folder}/{r.file.path}: {r.detail or r.status.value}" for m, r in bad[:20])
    local = any(not m.writable for m, _ in bad)
    raise CheckFailed(
        f"{len(bad)} {'file does' if len(bad) == 1 else 'files do'} not verify: {bad[0][1].file.path}"
        f" ({bad[0][1].status.value.replace('_', ' ')})",
        hint=_by_hand(bad, lock, profile) if local else f"dflashctl fetch {profile} --repair",
        detail=listed,
    )


def refuse_missing(models: tuple[ModelPlan, ...], profile: str) -> None:
    """CheckFailed that names what is not there, for a call that fetches nothing."""
    missing = [f"{m.folder}/{f.path}" for m in models for f in m.wanted]
    if missing:
        raise CheckFailed(
            f"{len(missing)} {'file is' if len(missing) == 1 else 'files are'} missing: {missing[0]}",
            hint=f"dflashctl fetch {profile}",
            detail="\n".join(missing[:20]),
        )


def _by_hand(bad: list[tuple[ModelPlan, FileReport]], lock: Path | None, profile: str) -> str:
    """Only its owner knows whether a local folder was changed on purpose."""
    advice = "put the recorded files back: a local folder is never written to"
    if lock is None or any(report.status not in _CHANGED for _, report in bad):
        return advice
    return f"{advice}; if they were changed on purpose: rm {lock}, then dflashctl fetch {profile}"


def _round(env: Env, models: tuple[ModelPlan, ...], errand: Errand, meter: Meter) -> tuple[ModelPlan, ...]:
    """One transfer of all that is missing, with everything unproven hashed meanwhile."""
    orders, tally = _orders(models), errand.tally
    wanted_bytes = sum(m.wanted_bytes for m in models)
    folders = {m.repo: m for m in models if m.repo is not None}
    began = env.clock.monotonic()
    with env.weight_store.hasher() as hasher:
        for model in models:
            for report in model.unverified:
                _submit(hasher, model, report, tally)

        def heard(event: TransferEvent) -> None:
            if event.finished is not None:
                model = folders[event.finished[0]]
                report = next(r for r in model.files if r.file.path == event.finished[1])
                _submit(hasher, model, report, tally)
            meter.heard(event)

        done = env.hub.fetch(orders, errand.wishes.rules, heard) if orders else Transfer()
        if orders:
            tally.transferred_bytes += wanted_bytes
            tally.transfer_s = (tally.transfer_s or 0.0) + env.clock.monotonic() - began
            tally.restarts += done.restarts
            tally.transport = done.transport
        proven = _by_path(hasher)
    meter.finish(f"{sum(len(o.files) for o in orders) - len(done.failed)} files fetched and verified")
    if done.failed:
        raise Unavailable(
            f"{len(done.failed)} of {sum(len(o.files) for o in orders)} files could not be fetched: {done.failed[0][0]}",
            hint="run the command again: it goes on where this ended",
            detail="\n".join(f"{name}: {reason}" for name, reason in done.failed[:20]),
        )
    return tuple(_with(m, proven) for m in models)


def _orders(models: tuple[ModelPlan, ...]) -> tuple[Order, ...]:
    return tuple(
        Order(repo=m.repo, commit=m.commit, files=m.wanted)
        for m in models
        if m.repo and m.commit and m.wanted
    )


def _submit(hasher: Hasher, model: ModelPlan, report: FileReport, tally: Tally) -> None:
    tally.verified_bytes += report.file.size_bytes
    hasher.submit(HashJob(path=Path(model.folder) / report.file.path, file=report.file))


def set_aside_bad(
    env: Env, models: tuple[ModelPlan, ...], tally: Tally, *, only: frozenset[tuple[str, str]] | None = None
) -> tuple[ModelPlan, ...]:
    """Bad files moved out of the way, and so missing again; only in the hub's cache, never in a local folder.

    `only` limits it to (model, path) pairs.
    """
    for model in models:
        for report in model.bad if model.writable else ():
            if only is None or (model.label, report.file.path) in only:
                place = env.weight_store.set_aside(Path(model.folder), report)
                tally.set_aside += [str(place)] if place is not None else []
    return looked_again(env, models)


def _by_path(hasher: Hasher) -> dict[Path, FileReport]:
    return {job.path: report for job, report in hasher.results()}


def _with(model: ModelPlan, proven: dict[Path, FileReport]) -> ModelPlan:
    folder = Path(model.folder)
    return replace(model, files=tuple(proven.get(folder / r.file.path, r) for r in model.files))


def _waiting(env: Env, repo: str) -> Callable[[str], None]:
    def say(holder: str) -> None:
        env.notify(
            Progress(step="wait", text=f"another dflashctl (process {holder}) fetches {repo}: waiting for it")
        )

    return say
