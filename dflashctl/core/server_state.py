"""Server state: what the supervisor knows and its limits, with the moves that every rule is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dflashctl.core.errors import ExitCode
from dflashctl.core.events import Action
from dflashctl.core.instance import LastExit, Phase, Reason
from dflashctl.core.start_phase import StartPhase

UNKILLABLE_AFTER_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Limits in seconds; `backoff_s` are the waits before each restart, changed by the share `jitter`."""

    progress_timeout_s: float = 600.0
    ready_timeout_s: float = 7200.0
    drain_timeout_s: float = 60.0
    kill_after_s: float = 20.0
    hang_after_s: float = 300.0
    stable_after_s: float = 600.0
    canary_interval_s: float = 60.0
    restarts: int = 3
    restart_on_hang: bool = True
    backoff_s: tuple[float, ...] = (5.0, 15.0, 45.0)
    jitter: float = 0.0


@dataclass(frozen=True, kw_only=True)
class State:
    """What the supervisor knows. `ending` is why we end this life ourselves, `stopping` why we stop for good.

    `alive_at` is the last proof that tokens come; `stuck_since` when work stood still, `canary_at` when a
    canary was last asked, `canary_since` since when one is in flight; `exit_code` ends it all.
    """

    phase: Phase = Phase.STARTING
    since: float = 0.0
    attempt: int = 0
    restarts_used: int = 0
    step: StartPhase | None = None
    done: int | None = None
    total: int | None = None
    running: bool = False
    exited: bool = False
    spawned_at: float = 0.0
    progress_at: float = 0.0
    ready_at: float | None = None
    ever_ready: bool = False
    load_s: float = 0.0
    activity: float | None = None
    working: bool | None = None
    alive_at: float = 0.0
    stuck_since: float | None = None
    canary_at: float = 0.0
    canary_since: float | None = None
    canary_failing_since: float | None = None
    stopping: Reason | None = None
    interrupted: bool = False
    ending: Reason | None = None
    ending_permanent: bool = False
    drain_until: float | None = None
    kill_at: float | None = None
    killed_at: float | None = None
    retry_at: float | None = None
    reason: Reason | None = None
    last_exit: LastExit | None = None
    exit_code: ExitCode | None = None

    @property
    def is_ready(self) -> bool:
        return self.ready_at is not None and self.phase in {Phase.READY, Phase.UNHEALTHY}


Result = tuple[State, tuple[Action, ...]]


_STEPS = tuple(StartPhase)
_TIMES = (
    "since",
    "spawned_at",
    "progress_at",
    "ready_at",
    "alive_at",
    "stuck_since",
    "canary_at",
    "canary_since",
    "canary_failing_since",
    "drain_until",
    "kill_at",
    "killed_at",
    "retry_at",
)


def spawn(state: State, now: float) -> Result:
    fresh = State(
        phase=Phase.STARTING,
        since=now,
        attempt=state.attempt + 1,
        restarts_used=state.restarts_used,
        spawned_at=now,
        progress_at=now,
        ever_ready=state.ever_ready,
        load_s=state.load_s,
        last_exit=state.last_exit,
        reason=state.reason,
    )
    return fresh, (Action.SPAWN,)


def end_life(state: State, reason: Reason, now: float, *, permanent: bool) -> Result:
    if state.ending is not None:
        return state, ()
    return kill(replace(state, ending=reason, ending_permanent=permanent, reason=reason), now)


def kill(state: State, now: float) -> Result:
    if not state.running:
        return state, ()
    return replace(state, killed_at=now if state.killed_at is None else state.killed_at), (Action.KILL,)


def stopped(state: State, now: float) -> Result:
    code = ExitCode.INTERRUPTED if state.interrupted else ExitCode.OK
    return replace(enter(state, Phase.STOPPED, now), exit_code=code), (Action.FINISH,)


def fail(state: State, reason: Reason, code: ExitCode, now: float) -> Result:
    return replace(enter(state, Phase.FAILED, now), reason=reason, exit_code=code), (Action.FINISH,)


def enter(state: State, phase: Phase, now: float) -> State:
    return replace(state, phase=phase, since=now)


def reached(moment: float | None, now: float) -> bool:
    return moment is not None and now >= moment


def longer(since: float | None, now: float, limit_s: float) -> bool:
    return since is not None and now - since >= limit_s


def furthest(step: StartPhase, other: StartPhase | None) -> StartPhase:
    """The later of two steps: a start repeats lines of earlier steps (for the draft), but does not go back."""
    return other if other is not None and _STEPS.index(other) > _STEPS.index(step) else step


def postponed(state: State, seconds: float) -> State:
    """Every moment later by `seconds`, as if the time in between had not been."""
    later: dict[str, Any] = {
        name: moment + seconds for name in _TIMES if (moment := getattr(state, name)) is not None
    }
    return replace(state, **later)
