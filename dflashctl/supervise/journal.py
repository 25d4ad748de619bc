"""Journal: the supervisor's state as the instance's record and events, and as progress for who watches."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.instance import ENDED, Phase, ProbeState, Served
from dflashctl.core.progress import Progress
from dflashctl.core.simulated import simulated_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dflashctl.core.instance import Identity, InstanceRecord
    from dflashctl.core.plan import Plan
    from dflashctl.core.server_state import State
    from dflashctl.ports.instances import OwnedInstance

_UNITS = {"load_target": "shards", "load_draft": "shards", "capture": "graphs"}
_STARTS = (Phase.STARTING, Phase.LOADING)


class Journal:
    """Writes at once when phase, step, reason or identity change, and at most once in `pause_s` for the rest."""

    def __init__(self, owned: OwnedInstance, *, pause_s: float, notify: Callable[[Progress], None]) -> None:
        self._owned = owned
        self._pause_s = pause_s
        self._notify = notify
        self._written_at = float("-inf")
        self._record = owned.current
        self.probe = ProbeState()
        self.facts: dict[str, str] = {}
        self.server: Identity | None = None
        self.sessions: tuple[Identity, ...] = ()
        self.container: str | None = None
        self.log_lost_lines = 0

    def begin(self, *, served: Served, budget: int, detached: bool) -> None:
        """What stays the same for the whole supervision."""
        self._record = replace(self._record, served=served, restarts_budget=budget, detached=detached)

    def update(self, state: State, *, force: bool = False) -> None:
        """Write what changed; events for a new phase or reason."""
        old, new = self._record, self._built(state)
        if new == old and not force:
            return
        urgent = force or _essence(new) != _essence(old)
        if not urgent and time.monotonic() - self._written_at < self._pause_s:
            return
        self._record, self._written_at = new, time.monotonic()
        self._owned.record(new)
        if new.phase != old.phase or new.reason != old.reason:
            text = why(new) or new.phase.value
            kind = "phase" if new.phase != old.phase else "reason"
            self._owned.event(kind, text, phase=new.phase, attempt=state.attempt)
        self._notify(progress_of(new))

    def note(self, kind: str, text: str) -> None:
        self._owned.event(kind, text)

    def _built(self, state: State) -> InstanceRecord:
        changed = state.phase is not self._record.phase
        return replace(
            self._record,
            phase=state.phase,
            phase_since_s=time.time() if changed else self._record.phase_since_s,
            step=state.step if state.phase is Phase.LOADING else None,
            done=state.done,
            total=state.total,
            ready=state.phase is Phase.READY,
            healthy=_healthy(state),
            reason=state.reason,
            server=self.server,
            sessions=self.sessions,
            container=self.container,
            restarts_used=state.restarts_used,
            last_exit=state.last_exit,
            probe=self.probe,
            facts=tuple(sorted(self.facts.items())),
            exit_code=int(state.exit_code) if state.exit_code is not None else None,
            log_lost_lines=self.log_lost_lines,
        )


def served_by(plan: Plan, environ: Mapping[str, str], *, kill_after_s: float) -> Served:
    """What the record says of the plan, started from `environ`."""
    return Served(
        profile=plan.profile,
        engine=plan.engine,
        engine_version=plan.engine_version,
        runtime=plan.runtime,
        host=plan.host,
        port=plan.port,
        served_model_name=plan.served_model_name,
        fingerprint=plan.fingerprint,
        target=plan.target.repo or plan.target.path,
        target_revision=plan.target.revision,
        draft=(plan.draft.repo or plan.draft.path) if plan.draft else None,
        draft_revision=plan.draft.revision if plan.draft else None,
        block_size=plan.block_size,
        gpus=plan.gpus,
        metrics_path=plan.endpoints.metrics,
        stop_limit_s=plan.timing.drain_timeout_s + kill_after_s,
        simulated_accept=simulated_by({**environ, **dict(plan.env)}) if plan.speculation else None,
    )


def _healthy(state: State) -> bool | None:
    if not state.is_ready:
        return None
    return state.phase is Phase.READY and state.canary_failing_since is None


def _essence(record: InstanceRecord) -> tuple[object, ...]:
    return (
        record.phase,
        record.step,
        record.reason,
        record.server,
        record.sessions,
        record.container,
        record.restarts_used,
        record.exit_code,
        record.healthy,
    )


def why(record: InstanceRecord) -> str | None:
    """The reason for this phase; while a start is under way the record's reason is that of the end before it."""
    return record.reason.text if record.reason and record.phase not in _STARTS else None


def progress_of(record: InstanceRecord) -> Progress:
    """The record in one line, for people who wait."""
    step = record.step.value if record.step else record.phase.value
    words = step.replace("_", " ")
    if record.phase is Phase.STARTING and record.restarts_used:
        words = f"starting again, restart {record.restarts_used} of {record.restarts_budget}"
    reason = why(record)
    text = f"{words}: {reason}" if reason else words
    return Progress(
        step=step,
        text=text,
        done=record.done,
        total=record.total,
        unit=_UNITS.get(step),
        final=record.phase in {*ENDED, Phase.READY},
    )
