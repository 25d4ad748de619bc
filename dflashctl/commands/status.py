"""`status`: what runs, since when, and how it is doing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.drift import fingerprint_now
from dflashctl.commands.full_disk import full_disk
from dflashctl.commands.instance_profile import nobody, start_line
from dflashctl.core.errors import ExitCode, StateError
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.instance import Phase
from dflashctl.core.metrics_text import live_figures
from dflashctl.core.report import Outcome, Report
from dflashctl.core.status import InstanceStatus, StatusList, status_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.instance import Snapshot
    from dflashctl.core.metrics_text import LiveFigures
    from dflashctl.env import Env

_LIVE_LIMIT_S = 2.0
_WATCH_S = 1.0


def status(env: Env, name: str | None = None, *, live: bool = True) -> Report:
    """One instance by name, or the only one known; all of them otherwise. Exit 3 when what is meant does not run.

    Of an instance that runs it says whether the plan has drifted: whether another one would be made now.
    """
    views, skipped = _all(env, live=live) if name is None else ((_view(env, name, live=live),), ())
    if len(views) == 1:
        only = views[0]
        again = None if only.running else start_line(env, only.name)
        skipped = (*skipped, *(() if again or only.running else (_nobody(only.name),)))
        report = _report(only, running=only.running, again=again)
    else:
        report = _report(StatusList(instances=views), running=any(v.running for v in views))
    return replace(report, findings=(*full_disk(env), *skipped))


def _all(env: Env, *, live: bool) -> tuple[tuple[InstanceStatus, ...], tuple[Finding, ...]]:
    """What is known here, and a note of each that cannot be read: the others are shown all the same."""
    views, skipped = (
        [],
        [_skipped(f"'{path}' is no instance's folder", None) for path in env.instances.odd_folders()],
    )
    for name in env.instances.names():
        try:
            views.append(_view(env, name, live=live))
        except StateError as error:  # noqa: PERF203 - each may fail on its own
            skipped.append(_skipped(error.message, error.hint))
    return tuple(views), tuple(skipped)


def _skipped(why: str, fix: str | None) -> Finding:
    return Finding(id="skipped", severity=Severity.WARNING, summary=f"left out: {why}", fix=fix)


def _nobody(name: str) -> Finding:
    error = nobody(name)
    return Finding(id="unknown_name", severity=Severity.WARNING, summary=error.message, fix=error.hint)


def watch(env: Env, name: str | None = None) -> Iterator[Report]:
    """A report a second until Ctrl-C."""
    try:
        while True:
            yield status(env, name)
            env.clock.sleep(_WATCH_S)
    except KeyboardInterrupt:
        yield status(env, name)


def _view(env: Env, name: str, *, live: bool) -> InstanceStatus:
    snapshot = env.instances.read(name)
    files = env.instances.log_files(name)
    return status_of(
        snapshot,
        now_s=env.clock.wall(),
        live=_live(env, snapshot) if live else None,
        log=str(files[-1]) if files else None,
        fingerprint=fingerprint_now(env, name) if snapshot.supervised else None,
    )


def _live(env: Env, snapshot: Snapshot) -> LiveFigures | None:
    record = snapshot.record
    serving = record is not None and record.phase in {Phase.READY, Phase.UNHEALTHY, Phase.DRAINING}
    if not snapshot.supervised or record is None or record.served is None or not serving:
        return None
    served = record.served
    page = env.glance(served.local_host, served.port, served.metrics_path, _LIVE_LIMIT_S)
    return live_figures(page.decode("utf-8", "replace")) if page is not None else None


def _report(data: InstanceStatus | StatusList, *, running: bool, again: str | None = None) -> Report:
    return Report(
        command="status",
        data=data,
        outcome=Outcome.OK if running else Outcome.FAILED,
        exit_code=ExitCode.OK if running else ExitCode.NOT_RUNNING,
        next_steps=() if running else (again or "dflashctl up PROFILE",),
    )
