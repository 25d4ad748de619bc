"""Foreground: one supervision from the lock to the goodbye, in the calling process."""

from __future__ import annotations

import os
import random
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dflashctl.core.child_env import secret_values
from dflashctl.core.errors import DflashError, ExitCode
from dflashctl.core.instance import LastExit, Phase, Reason
from dflashctl.core.outer import restart_budget
from dflashctl.core.pace import Pace, policy
from dflashctl.core.redact import Redactor
from dflashctl.core.supervise_result import SuperviseResult
from dflashctl.core.verdict import exit_status_of, failure_finding
from dflashctl.edges.guard_process import GuardProcess
from dflashctl.edges.local_server import LocalLauncher
from dflashctl.edges.log_file import LogFile
from dflashctl.edges.notify_systemd import SystemdNotify
from dflashctl.edges.pump import Pump
from dflashctl.edges.reaper import Reaper, adopt_orphans
from dflashctl.edges.screen import Screen
from dflashctl.edges.secret_file import api_key
from dflashctl.supervise.docker_runtime import docker_launcher
from dflashctl.supervise.journal import Journal, served_by
from dflashctl.supervise.log_reader import LineLabels
from dflashctl.supervise.loop import Loop
from dflashctl.supervise.notifier import Notifier
from dflashctl.supervise.proof import ServerProbe
from dflashctl.supervise.signals import Signals
from dflashctl.supervise.sweep import sweep_previous
from dflashctl.supervise.tools import Tools
from dflashctl.supervise.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.core.plan import Plan
    from dflashctl.core.server_state import Policy, State
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance
    from dflashctl.ports.server import Launcher

_JITTER = 0.1
_PID_1 = 1


def run(
    plan: Plan,
    env: Env,
    *,
    screen: Callable[[str], None] | None = None,
    detached: bool = False,
    owned: OwnedInstance | None = None,
    pace: Pace | None = None,
) -> SuperviseResult:
    """Start the plan's server and stay until it has ended for good; the calling process must be single-minded.

    From the main thread only. `screen` gets the server's lines from a thread of its own, and loses some when it is
    slow. `owned` is the instance when its lock is held already. Raises Busy, StateError and Permanent before the
    start; whatever happens to the server is in the result.
    """
    with ExitStack() as stack:
        # First: whoever sees that we own the instance may ask us to stop at once.
        signals = stack.enter_context(Signals(detached=detached))
        held = owned if owned is not None else stack.enter_context(env.instances.own(plan.name))
        kept = (pace or Pace()).within(plan.timing.hang_after_s)
        tools = _tools(plan, env, held, signals, screen=screen, pace=kept)
        served = served_by(plan, env.environ, kill_after_s=tools.pace.kill_after_s)
        budget = restart_budget(env.environ, os.getpid(), plan.timing.restarts)
        tools.journal.begin(served=served, budget=budget, detached=detached)
        sweep_previous(held)
        limits = policy(plan.timing, tools.pace, restarts=budget, jitter=random.uniform(-_JITTER, _JITTER))  # noqa: S311 - spreads restarts
        state, stuck = _supervise(tools, limits)
        return _result(held, state, stuck=stuck)


def _tools(
    plan: Plan,
    env: Env,
    owned: OwnedInstance,
    signals: Signals,
    *,
    screen: Callable[[str], None] | None,
    pace: Pace,
) -> Tools:
    from dflashctl.engines import ENGINES

    key = api_key(env.environ)
    shown, reaper, log = Screen(), Reaper(), LogFile(owned.log_path)
    url = served_by(plan, env.environ, kill_after_s=pace.kill_after_s).url
    probe = ServerProbe(env.web, plan, url=url, key=key)
    engine = ENGINES[plan.engine]
    labels = LineLabels(engine.read_log_line)
    tools = Tools(
        plan=plan,
        env=env,
        owned=owned,
        engine=engine,
        pace=pace,
        key=key,
        signals=signals,
        reaper=reaper,
        guard=GuardProcess(reaper, str(owned.folder)),
        launcher=_launcher(plan, reaper, owned),
        log=log,
        pump=Pump(
            log=log,
            redact=Redactor((*secret_values(env.environ), *((key,) if key else ()))),
            label=labels,
            show=lambda line: tools.show(line),  # noqa: PLW0108 - tools does not exist yet
            wake=signals.wake,
        ),
        screen=shown,
        sink=screen,
        watch=Watch(
            probe, pace, port=plan.port, proof_timeout_s=plan.timing.progress_timeout_s, wake=signals.wake
        ),
        journal=Journal(
            owned, pause_s=pace.record_s, notify=lambda progress: shown.post(partial(env.notify, progress))
        ),
        notifier=Notifier(SystemdNotify(env.environ)),
        labels=labels,
    )
    return tools


def _launcher(plan: Plan, reaper: Reaper, owned: OwnedInstance) -> Launcher:
    if plan.runtime == "docker":
        return docker_launcher(str(owned.folder))
    return LocalLauncher(reaper)


def _supervise(tools: Tools, limits: Policy) -> tuple[State, bool]:
    """The final state, and whether the screen is stuck."""
    adopt_orphans(on=True)
    if os.getpid() != _PID_1:
        tools.guard.start()
    tools.screen.start()
    loop = Loop(tools, limits)
    try:
        return loop.run(), not tools.screen.close()
    except BaseException as error:
        loop.abandon()
        _record_bug(tools.owned, error)
        raise
    finally:
        tools.guard.dismiss()
        tools.log.close()
        adopt_orphans(on=False)


def _record_bug(owned: OwnedInstance, error: BaseException) -> None:
    """The supervisor itself failed, and its server with it; or it met what it can name."""
    code, last = ExitCode.BUG, owned.current.last_exit
    if isinstance(error, DflashError):
        code, last = error.exit_code, LastExit(kind="not_started", fix=error.hint)
        reason = Reason(code="not_started", text=error.message)
    else:
        text = f"the supervisor failed: {type(error).__name__}: {error}"
        reason = Reason(code="supervisor_failed", text=text)
    owned.enter(Phase.FAILED, reason.text)
    ended = replace(owned.current, reason=reason, last_exit=last, exit_code=int(code))
    owned.record(replace(ended, sessions=(), ready=False, healthy=None))


def _result(owned: OwnedInstance, state: State, *, stuck: bool) -> SuperviseResult:
    code = state.exit_code or ExitCode.OK
    status = int(code)
    if os.getpid() == _PID_1 and code is ExitCode.GAVE_UP:
        status = exit_status_of(state.last_exit) or status
    findings = (
        (failure_finding(state.reason, state.last_exit),)
        if code in {ExitCode.GAVE_UP, ExitCode.PERMANENT} and state.reason
        else ()
    )
    return SuperviseResult(
        record=owned.current,
        exit_code=code,
        exit_status=status,
        log=str(owned.log_path),
        findings=findings,
        screen_stuck=stuck,
    )
