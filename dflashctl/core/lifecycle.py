"""Lifecycle: (state, event, now, policy) → (state, actions), the whole behaviour of the supervisor as a function.

All times are seconds of one monotonic clock. The budget of restarts counts since the last stable period.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dflashctl.core import events as ev
from dflashctl.core.errors import ExitCode
from dflashctl.core.events import Action
from dflashctl.core.instance import Phase, Reason
from dflashctl.core.server_state import (
    UNKILLABLE_AFTER_S,
    Policy,
    Result,
    State,
    end_life,
    enter,
    fail,
    furthest,
    kill,
    longer,
    postponed,
    reached,
    spawn,
    stopped,
)
from dflashctl.core.start_phase import StartPhase

if TYPE_CHECKING:
    from collections.abc import Callable


def step(state: State, event: ev.Event, now: float, policy: Policy) -> Result:
    """The next state and what to do; anything after the end, and any event without a rule, changes nothing."""
    if state.exit_code is not None:
        return state, ()
    return _RULES[type(event)](state, event, now, policy)


def _begin(state: State, _event: ev.Begin, now: float, _policy: Policy) -> Result:
    return spawn(state, now)


def _spawned(state: State, _event: ev.Spawned, now: float, policy: Policy) -> Result:
    state = replace(state, running=True, progress_at=now)
    if state.stopping is not None:
        return _drain(state, now, policy)
    return enter(replace(state, step=StartPhase.RESOLVE), Phase.LOADING, now), ()


def _spawn_failed(state: State, event: ev.SpawnFailed, now: float, policy: Policy) -> Result:
    if state.stopping is not None:
        return stopped(state, now)
    return _again_or_fail(state, event.reason, now, policy, permanent=event.permanent)


def _progressed(state: State, event: ev.Progressed, now: float, _policy: Policy) -> Result:
    if state.phase is not Phase.LOADING:
        return state, ()
    state = replace(state, progress_at=now)
    at = furthest(state.step or StartPhase.RESOLVE, event.step)
    if at not in {state.step, StartPhase.READY}:
        return replace(state, step=at, done=event.done, total=event.total), ()
    if event.done is not None:
        return replace(state, done=event.done, total=event.total), ()
    return state, ()


def _port_taken(state: State, event: ev.PortTaken, now: float, _policy: Policy) -> Result:
    return end_life(state, event.reason, now, permanent=True) if _loading(state) else (state, ())


def _refused(state: State, event: ev.Refused, now: float, _policy: Policy) -> Result:
    return end_life(state, event.reason, now, permanent=True) if _loading(state) else (state, ())


def _proved(state: State, _event: ev.Proved, now: float, _policy: Policy) -> Result:
    if not _loading(state):
        return state, ()
    ready = replace(
        state,
        ready_at=now,
        ever_ready=True,
        alive_at=now,
        load_s=now - state.spawned_at,
        step=StartPhase.READY,
        done=None,
        total=None,
        reason=None,
    )
    return enter(ready, Phase.READY, now), ()


def _loading(state: State) -> bool:
    return state.phase is Phase.LOADING and state.ending is None


def _metrics(state: State, event: ev.Metrics, now: float, _policy: Policy) -> Result:
    if not state.is_ready:
        return state, ()
    moved = event.activity is not None and event.activity != state.activity
    activity = event.activity if event.activity is not None else state.activity
    state = replace(state, activity=activity, working=event.working)
    if moved:
        return _alive(state, now), ()
    if not event.working:
        return replace(state, stuck_since=None), ()
    return replace(state, stuck_since=now if state.stuck_since is None else state.stuck_since), ()


def _tokens_seen(state: State, _event: ev.TokensSeen, now: float, _policy: Policy) -> Result:
    return (_alive(state, now), ()) if state.is_ready else (state, ())


def _alive(state: State, now: float) -> State:
    """Tokens come: whatever looked like a hang was none."""
    state = replace(state, alive_at=now, stuck_since=None, canary_failing_since=None)
    if state.phase is Phase.UNHEALTHY and state.ending is None:
        return replace(enter(state, Phase.READY, now), reason=None)
    return state


def _canary_done(state: State, event: ev.CanaryDone, now: float, policy: Policy) -> Result:
    asked = state.canary_since if state.canary_since is not None else now
    state = replace(state, canary_since=None)
    if not state.is_ready or state.ending is not None:
        return state, ()
    if event.ok:
        return _alive(state, now), ()
    failing = state.canary_failing_since if state.canary_failing_since is not None else asked
    state = replace(state, canary_failing_since=failing)
    if longer(state.stuck_since, now, policy.hang_after_s):
        return _hung(state, "requests are in work, but no token came", now, policy)
    if now - failing >= policy.hang_after_s:
        return _hung(state, "test completions got no answer", now, policy)
    return state, ()


def _hung(state: State, what: str, now: float, policy: Policy) -> Result:
    reason = Reason(code="hang", text=f"{what} for {policy.hang_after_s:g} s, and a test completion failed")
    if state.phase is Phase.READY:
        state = enter(state, Phase.UNHEALTHY, now)
    state = replace(state, reason=reason)
    if not policy.restart_on_hang:
        return state, ()
    ended, actions = end_life(state, reason, now, permanent=False)
    return ended, (Action.DUMP_STACKS, *actions)


def _stop_requested(state: State, event: ev.StopRequested, now: float, policy: Policy) -> Result:
    if state.stopping is not None:
        return kill(replace(state, reason=event.reason), now)
    early = event.interrupt and not state.ever_ready
    state = replace(state, stopping=event.reason, interrupted=early, reason=event.reason)
    if state.phase is Phase.BACKOFF:
        return stopped(state, now)
    if not state.running or state.exited:
        return state, ()
    return _drain(state, now, policy)


def _drain(state: State, now: float, policy: Policy) -> Result:
    until = now + policy.drain_timeout_s
    draining = replace(state, drain_until=until, kill_at=until + policy.kill_after_s)
    return enter(draining, Phase.DRAINING, now), (Action.TERMINATE,)


def _exited(state: State, _event: ev.Exited, now: float, _policy: Policy) -> Result:
    if state.exited:
        return state, ()
    return replace(state, exited=True, killed_at=now), (Action.CLEAN_UP,)


def _ended(state: State, event: ev.Ended, now: float, policy: Policy) -> Result:
    last = event.last_exit
    if state.ending is not None:
        last = replace(last, kind=state.ending.code, fix=None)
    state = replace(state, running=False, exited=True, killed_at=None, last_exit=last)
    if state.stopping is not None:
        return stopped(state, now)
    reason = state.ending or event.reason
    permanent = state.ending_permanent if state.ending is not None else event.permanent
    return _again_or_fail(state, reason, now, policy, permanent=permanent)


def _again_or_fail(state: State, reason: Reason, now: float, policy: Policy, *, permanent: bool) -> Result:
    if permanent:
        return fail(state, reason, ExitCode.PERMANENT, now)
    if state.restarts_used >= policy.restarts:
        return fail(state, reason, ExitCode.GAVE_UP, now)
    wait = policy.backoff_s[min(state.restarts_used, len(policy.backoff_s) - 1)] * (1 + policy.jitter)
    waiting = replace(
        state, restarts_used=state.restarts_used + 1, retry_at=now + wait, reason=reason, step=None
    )
    return enter(waiting, Phase.BACKOFF, now), ()


def _slept(state: State, event: ev.Slept, _now: float, _policy: Policy) -> Result:
    return postponed(state, event.seconds), ()


def _tick(state: State, _event: ev.Tick, now: float, policy: Policy) -> Result:
    if state.killed_at is not None:
        return _check_killed(state, now)
    rule = _TICKS.get(state.phase)
    return rule(state, now, policy) if rule else (state, ())


def _tick_loading(state: State, now: float, policy: Policy) -> Result:
    if now - state.progress_at >= policy.progress_timeout_s:
        text = f"no sign of progress for {policy.progress_timeout_s:g} s while in {_step_name(state)}"
        reason = Reason(code="no_progress", text=text)
    elif now - state.spawned_at >= policy.ready_timeout_s:
        reason = Reason(code="not_ready", text=f"not ready after {policy.ready_timeout_s:g} s")
    else:
        return state, ()
    ended, actions = end_life(state, reason, now, permanent=False)
    return ended, (Action.DUMP_STACKS, *actions)


def _step_name(state: State) -> str:
    return state.step.value if state.step else "start"


def _tick_ready(state: State, now: float, policy: Policy) -> Result:
    stable = max(policy.stable_after_s, state.load_s)
    if state.restarts_used and longer(state.ready_at, now, stable):
        state = replace(state, restarts_used=0)
    if state.canary_since is not None:
        return state, ()
    doubtful = state.working is not True or longer(state.stuck_since, now, policy.hang_after_s)
    if doubtful and now - max(state.alive_at, state.canary_at) >= policy.canary_interval_s:
        return replace(state, canary_since=now, canary_at=now), (Action.CANARY,)
    return state, ()


def _tick_draining(state: State, now: float, policy: Policy) -> Result:
    if reached(state.kill_at, now):
        total = policy.drain_timeout_s + policy.kill_after_s
        text = f"killed: still running {total:g} s after the stop was asked for"
        return kill(replace(state, reason=Reason(code="drain_killed", text=text)), now)
    if reached(state.drain_until, now):
        text = f"drain cut after {policy.drain_timeout_s:g} s: running requests are aborted"
        cut = replace(state, drain_until=None, reason=Reason(code="drain_cut", text=text))
        return cut, (Action.ABORT_REQUESTS,)
    return state, ()


def _tick_backoff(state: State, now: float, _policy: Policy) -> Result:
    return spawn(state, now) if reached(state.retry_at, now) else (state, ())


def _check_killed(state: State, now: float) -> Result:
    if not longer(state.killed_at, now, UNKILLABLE_AFTER_S):
        return state, ()
    text = f"processes of the server survived SIGKILL for {UNKILLABLE_AFTER_S:g} s"
    return fail(state, Reason(code="unkillable", text=text), ExitCode.GAVE_UP, now)


_TICKS: dict[Phase, Callable[[State, float, Policy], Result]] = {
    Phase.LOADING: _tick_loading,
    Phase.READY: _tick_ready,
    Phase.UNHEALTHY: _tick_ready,
    Phase.DRAINING: _tick_draining,
    Phase.BACKOFF: _tick_backoff,
}
_RULES: dict[type, Callable[[State, Any, float, Policy], Result]] = {
    ev.Begin: _begin,
    ev.Spawned: _spawned,
    ev.SpawnFailed: _spawn_failed,
    ev.Progressed: _progressed,
    ev.PortTaken: _port_taken,
    ev.Refused: _refused,
    ev.Proved: _proved,
    ev.Metrics: _metrics,
    ev.TokensSeen: _tokens_seen,
    ev.CanaryDone: _canary_done,
    ev.StopRequested: _stop_requested,
    ev.Exited: _exited,
    ev.Ended: _ended,
    ev.Slept: _slept,
    ev.Tick: _tick,
}
