"""The lifecycle as histories: (seconds, event) → phase and actions."""

from dataclasses import replace

import pytest

from dflashctl.core import events as ev
from dflashctl.core.errors import ExitCode
from dflashctl.core.events import Action
from dflashctl.core.instance import LastExit, Phase, Reason
from dflashctl.core.lifecycle import step
from dflashctl.core.server_state import Policy, State
from dflashctl.core.start_phase import StartPhase

POLICY = Policy(
    progress_timeout_s=600,
    ready_timeout_s=7200,
    drain_timeout_s=60,
    kill_after_s=20,
    hang_after_s=300,
    stable_after_s=600,
    canary_interval_s=60,
    restarts=3,
    backoff_s=(5, 15, 45),
)
STOP = ev.StopRequested(reason=Reason(code="stop", text="TERM"))
CTRL_C = ev.StopRequested(reason=Reason(code="stop", text="INT"), interrupt=True)
WHY = Reason(code="killed", text="killed")
CRASH = (ev.Exited(), ev.Ended(last_exit=LastExit(signal=9), reason=WHY))
BAD = (ev.Exited(), ev.Ended(last_exit=LastExit(status=2), reason=WHY, permanent=True))
START = ((0, ev.Begin()), (1, ev.Spawned()))
READY = (*START, (100, ev.Proved()))
TICK = ev.Tick()
BUSY = ev.Metrics(activity=10, working=True)
IDLE = ev.Metrics(activity=10, working=False)


def play(*history, policy=POLICY, state=None):
    """The last state, and every action with its second."""
    state = state or State()
    done = []
    for at, event in history:
        state, actions = step(state, event, float(at), policy)
        done += [(at, action) for action in actions]
    return state, done


def at(second, *events):
    return tuple((second, event) for event in events)


CASES = {
    "an ordinary life": (
        (*READY, (200, STOP), *at(205, ev.Exited(), ev.Ended(last_exit=LastExit(status=0), reason=WHY))),
        Phase.STOPPED,
        ExitCode.OK,
        [(0, "spawn"), (200, "terminate"), (205, "clean_up"), (205, "finish")],
    ),
    "ctrl-c before it is ready": (
        (*START, (5, CTRL_C), *at(6, *CRASH)),
        Phase.STOPPED,
        ExitCode.INTERRUPTED,
        [(0, "spawn"), (5, "terminate"), (6, "clean_up"), (6, "finish")],
    ),
    "ctrl-c after it was ready": (
        (*READY, (150, CTRL_C), *at(151, *CRASH)),
        Phase.STOPPED,
        ExitCode.OK,
        [(0, "spawn"), (150, "terminate"), (151, "clean_up"), (151, "finish")],
    ),
    "term while the program is being started": (
        ((0, ev.Begin()), (0, STOP), (1, ev.Spawned()), *at(2, *CRASH)),
        Phase.STOPPED,
        ExitCode.OK,
        [(0, "spawn"), (1, "terminate"), (2, "clean_up"), (2, "finish")],
    ),
    "it cannot be started": (
        ((0, ev.Begin()), (0, ev.SpawnFailed(reason=WHY))),
        Phase.FAILED,
        ExitCode.PERMANENT,
        [(0, "spawn"), (0, "finish")],
    ),
    "what it wants for a start may come back": (
        (
            (0, ev.Begin()),
            (0, ev.SpawnFailed(reason=WHY, permanent=False)),
            (4, TICK),
            (5, TICK),
            (5, ev.Spawned()),
        ),
        Phase.LOADING,
        None,
        [(0, "spawn"), (5, "spawn")],
    ),
    "a permanent end is not retried": (
        (*START, *at(9, *BAD)),
        Phase.FAILED,
        ExitCode.PERMANENT,
        [(0, "spawn"), (9, "clean_up"), (9, "finish")],
    ),
    "a transient end waits, then starts again": (
        (*START, *at(10, *CRASH), (14, TICK), (15, TICK)),
        Phase.STARTING,
        None,
        [(0, "spawn"), (10, "clean_up"), (15, "spawn")],
    ),
    "term in back-off": (
        (*START, *at(10, *CRASH), (11, STOP)),
        Phase.STOPPED,
        ExitCode.OK,
        [(0, "spawn"), (10, "clean_up"), (11, "finish")],
    ),
    "no progress": (
        (*START, (500, ev.Progressed(step=StartPhase.LOAD_TARGET)), (1099, TICK), (1100, TICK)),
        Phase.LOADING,
        None,
        [(0, "spawn"), (1100, "dump_stacks"), (1100, "kill")],
    ),
    "progress for ever is not for ever": (
        (*START, *((s, ev.Progressed()) for s in range(100, 7200, 100)), (7199, TICK), (7200, TICK)),
        Phase.LOADING,
        None,
        [(0, "spawn"), (7200, "dump_stacks"), (7200, "kill")],
    ),
    "a foreign listener": (
        (*START, (5, ev.PortTaken(reason=WHY)), *at(6, *CRASH)),
        Phase.FAILED,
        ExitCode.PERMANENT,
        [(0, "spawn"), (5, "kill"), (6, "clean_up"), (6, "finish")],
    ),
    "the wrong server": (
        (*START, (5, ev.Refused(reason=WHY)), *at(6, *CRASH)),
        Phase.FAILED,
        ExitCode.PERMANENT,
        [(0, "spawn"), (5, "kill"), (6, "clean_up"), (6, "finish")],
    ),
    "a drain that is cut, then killed": (
        (*READY, (200, STOP), (259, TICK), (260, TICK), (261, TICK), (279, TICK), (280, TICK)),
        Phase.DRAINING,
        None,
        [(0, "spawn"), (200, "terminate"), (260, "abort_requests"), (280, "kill")],
    ),
    "a second signal": (
        (*READY, (200, STOP), (201, STOP)),
        Phase.DRAINING,
        None,
        [(0, "spawn"), (200, "terminate"), (201, "kill")],
    ),
    "work without tokens and a failed canary": (
        (
            *READY,
            (101, BUSY),
            (102, BUSY),
            (401, BUSY),
            (402, TICK),
            (440, BUSY),
            (440, ev.CanaryDone(ok=False)),
        ),
        Phase.UNHEALTHY,
        None,
        [(0, "spawn"), (402, "canary"), (440, "dump_stacks"), (440, "kill")],
    ),
    "work without tokens, but the canary lives": (
        (*READY, (101, BUSY), (102, BUSY), (402, TICK), (403, ev.CanaryDone(ok=True)), (404, TICK)),
        Phase.READY,
        None,
        [(0, "spawn"), (402, "canary")],
    ),
    "tokens came while the canary waited": (
        (
            *READY,
            (101, BUSY),
            (102, BUSY),
            (402, TICK),
            (460, ev.Metrics(activity=11, working=True)),
            (460, ev.CanaryDone(ok=False)),
        ),
        Phase.READY,
        None,
        [(0, "spawn"), (402, "canary")],
    ),
    "the log shows batches": (
        (*READY, (101, BUSY), *((s, ev.TokensSeen()) for s in range(150, 1000, 50)), (1000, TICK)),
        Phase.READY,
        None,
        [(0, "spawn")],
    ),
    "idle: a canary now and then": (
        (*READY, (101, IDLE), (161, TICK), (162, ev.CanaryDone(ok=True)), (163, TICK), (222, TICK)),
        Phase.READY,
        None,
        [(0, "spawn"), (161, "canary"), (222, "canary")],
    ),
    "idle canaries fail for long": (
        (
            *READY,
            (101, IDLE),
            *(
                item
                for s in range(161, 462, 60)
                for item in ((s, IDLE), (s, TICK), (s + 30, ev.CanaryDone(ok=False)))
            ),
        ),
        Phase.UNHEALTHY,
        None,
        [(0, "spawn"), *((s, "canary") for s in range(161, 462, 60)), (491, "dump_stacks"), (491, "kill")],
    ),
    "what survives a kill": (
        (*START, (5, ev.PortTaken(reason=WHY)), (34, TICK), (35, TICK)),
        Phase.FAILED,
        ExitCode.GAVE_UP,
        [(0, "spawn"), (5, "kill"), (35, "finish")],
    ),
    "nothing happens after the end": (
        ((0, ev.Begin()), (0, ev.SpawnFailed(reason=WHY)), (1, TICK), (2, STOP), *at(3, *CRASH)),
        Phase.FAILED,
        ExitCode.PERMANENT,
        [(0, "spawn"), (0, "finish")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_history(name):
    history, phase, code, actions = CASES[name]
    state, done = play(*history)
    assert (state.phase, state.exit_code) == (phase, code)
    assert [(when, action.value) for when, action in done] == actions


def test_fault_06_the_budget_counts_though_each_life_was_ready():
    state, now = State(), 0.0
    for life in range(4):
        state, _ = play((now, ev.Begin()), state=state) if life == 0 else play((now, TICK), state=state)
        state, _ = play((now + 1, ev.Spawned()), (now + 50, ev.Proved()), *at(now + 60, *CRASH), state=state)
        now += 60 + 45
    assert (state.phase, state.exit_code, state.restarts_used) == (Phase.FAILED, ExitCode.GAVE_UP, 3)


@pytest.mark.parametrize(
    ("load_s", "ready_s", "used"), [(100, 600, 0), (100, 599, 1), (1200, 1199, 1), (1200, 1200, 0)]
)
def test_fault_07_stable_is_the_longer_of_the_limit_and_the_load(load_s, ready_s, used):
    state = replace(State(), restarts_used=1)
    state, _ = play(
        (0, ev.Begin()), (0, ev.Spawned()), (load_s, ev.Proved()), (load_s + ready_s, TICK), state=state
    )
    assert state.restarts_used == used


def test_back_off_grows_and_has_jitter():
    waits = []
    for used in range(4):
        policy = replace(POLICY, restarts=9, jitter=0.1)
        state, _ = play(*START, *at(10, *CRASH), state=replace(State(), restarts_used=used), policy=policy)
        waits.append(round(state.retry_at - 10, 3))
    assert waits == [5.5, 16.5, 49.5, 49.5]


def test_no_budget_means_no_restart():
    state, done = play(*READY, *at(200, *CRASH), policy=replace(POLICY, restarts=0))
    assert (state.phase, state.exit_code) == (Phase.FAILED, ExitCode.GAVE_UP)
    assert Action.SPAWN not in [action for when, action in done if when]


def test_fault_34_no_limit_runs_while_the_supervisor_stands_still():
    history = (*READY, (101, BUSY), (102, TICK))
    state, done = play(*history, (1102, ev.Slept(seconds=1000)), (1103, TICK), (1103, BUSY), (1104, TICK))
    assert state.phase is Phase.READY
    assert done == [(0, Action.SPAWN)]
    state, done = play(*START, (1100, ev.Slept(seconds=1000)), (1101, TICK))
    assert done == [(0, Action.SPAWN)]


def test_fault_35_only_the_monotonic_clock_counts():
    """No rule can see the wall clock: the same history shifted as a whole gives the same actions."""
    history = CASES["a drain that is cut, then killed"][0]
    _, plain = play(*history)
    _, shifted = play(*((when + 7200, event) for when, event in history))
    assert [(when + 7200, action) for when, action in plain] == shifted


def test_steps_never_go_back():
    back = ev.Progressed(step=StartPhase.LOAD_TARGET, done=0, total=4)
    state, _ = play(*START, (2, ev.Progressed(step=StartPhase.LOAD_DRAFT)), (3, back))
    assert (state.step, state.done, state.total) == (StartPhase.LOAD_DRAFT, 0, 4)
    assert state.progress_at == 3


def test_unhealthy_without_a_restart_recovers_with_tokens():
    policy = replace(POLICY, restart_on_hang=False)
    state, done = play(*CASES["work without tokens and a failed canary"][0], policy=policy)
    assert state.phase is Phase.UNHEALTHY
    assert (440, Action.KILL) not in done
    state, _ = play((450, ev.Metrics(activity=99, working=True)), state=state, policy=policy)
    assert state.phase is Phase.READY
    assert state.reason is None


def test_ready_is_latched_and_late_answers_change_nothing():
    state, done = play(
        *READY, (101, ev.Refused(reason=WHY)), (102, ev.PortTaken(reason=WHY)), (103, ev.Proved())
    )
    assert state.phase is Phase.READY
    assert state.since == 100
    assert done == [(0, Action.SPAWN)]
