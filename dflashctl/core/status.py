"""Status: an instance as people and scripts see it, from its record, its lock and its server's figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflashctl.core.instance import ENDED, Phase, Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.instance import InstanceRecord, LastExit, ProbeState, Served, Snapshot
    from dflashctl.core.metrics_text import LiveFigures

STATUS_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class SupervisorView:
    """`alive` is decided by the lock."""

    pid: int | None
    alive: bool
    detached: bool = False


@dataclass(frozen=True, kw_only=True)
class ServerView:
    pid: int | None
    sid: int | None
    container: str | None
    port: int
    url: str
    model: str
    engine: str
    engine_version: str
    target: str | None
    target_revision: str | None
    draft: str | None
    draft_revision: str | None
    speculation: bool
    block_size: int | None


@dataclass(frozen=True, kw_only=True)
class RestartsView:
    used: int
    budget: int


@dataclass(frozen=True, kw_only=True)
class StepView:
    """The step of a start, with `done` of `total` where they are counted."""

    step: str
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class InstanceStatus:
    """`drift` is None when no plan was given to compare with; `live` None when the server is not asked.

    `phase_for_s` counts by the wall clock, for display only.
    """

    schema_version: int = STATUS_VERSION
    name: str
    phase: Phase
    phase_since_s: float | None = None
    phase_for_s: float | None = None
    started_at_s: float | None = None
    ready: bool = False
    healthy: bool | None = None
    reason: Reason | None = None
    progress: StepView | None = None
    profile: str | None = None
    supervisor: SupervisorView
    server: ServerView | None = None
    restarts: RestartsView | None = None
    last_exit: LastExit | None = None
    probe: ProbeState | None = None
    live: LiveFigures | None = None
    gpus: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    log: str | None = None
    log_lost_lines: int = 0
    config_digest: str | None = None
    drift: bool | None = None

    @property
    def running(self) -> bool:
        return self.supervisor.alive


@dataclass(frozen=True, kw_only=True)
class StatusList:
    """Every instance that was ever started here and is known."""

    instances: tuple[InstanceStatus, ...]


def status_of(
    snapshot: Snapshot,
    *,
    now_s: float,
    live: LiveFigures | None = None,
    log: str | None = None,
    fingerprint: str | None = None,
) -> InstanceStatus:
    """What a snapshot means; a record whose supervisor is gone is never taken at its word."""
    record = snapshot.record
    if record is None:
        return _unknown(snapshot, log)
    phase, reason = _phase(snapshot, record)
    up = snapshot.supervised
    served = record.served
    return InstanceStatus(
        name=snapshot.name,
        phase=phase,
        phase_since_s=record.phase_since_s,
        phase_for_s=max(0.0, now_s - record.phase_since_s),
        started_at_s=record.started_at_s,
        ready=record.ready and up,
        healthy=record.healthy if up else None,
        reason=reason,
        progress=StepView(step=record.step.value, done=record.done, total=record.total)
        if record.step and up
        else None,
        profile=served.profile if served else None,
        supervisor=SupervisorView(
            pid=record.supervisor.pid if record.supervisor else None, alive=up, detached=record.detached
        ),
        server=_server(record, served) if served else None,
        restarts=RestartsView(used=record.restarts_used, budget=record.restarts_budget),
        last_exit=record.last_exit,
        probe=record.probe,
        live=live,
        gpus=served.gpus if served else (),
        facts=dict(record.facts),
        log=log,
        log_lost_lines=record.log_lost_lines,
        config_digest=served.fingerprint if served else None,
        drift=served.fingerprint != fingerprint if served and fingerprint else None,
    )


def _phase(snapshot: Snapshot, record: InstanceRecord) -> tuple[Phase, Reason | None]:
    if snapshot.supervised or record.phase in ENDED:
        return record.phase, record.reason
    pid = record.supervisor.pid if record.supervisor else "?"
    text = f"the supervisor (pid {pid}) went without a goodbye in phase {record.phase.value}"
    return Phase.STOPPED, Reason(code="unclean_end", text=text)


def _server(record: InstanceRecord, served: Served) -> ServerView:
    return ServerView(
        pid=record.server.pid if record.server else None,
        sid=record.server.session if record.server else None,
        container=record.container,
        port=served.port,
        url=served.url,
        model=served.served_model_name,
        engine=served.engine,
        engine_version=served.engine_version,
        target=served.target,
        target_revision=served.target_revision,
        draft=served.draft,
        draft_revision=served.draft_revision,
        speculation=served.draft is not None,
        block_size=served.block_size,
    )


def _unknown(snapshot: Snapshot, log: str | None) -> InstanceStatus:
    reason = Reason(code="record_unreadable", text=snapshot.problem) if snapshot.problem else None
    phase = Phase.PREFLIGHT if snapshot.supervised else Phase.STOPPED
    supervisor = SupervisorView(pid=snapshot.owner_pid, alive=snapshot.supervised)
    return InstanceStatus(name=snapshot.name, phase=phase, reason=reason, supervisor=supervisor, log=log)
