"""Detached: start the supervisor in a session of its own, and wait until it is ready or has failed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.errors import ExitCode, StateError
from dflashctl.core.instance import ENDED, Phase
from dflashctl.core.plan_file import dump_plan
from dflashctl.core.status import status_of
from dflashctl.core.supervise_result import SuperviseResult
from dflashctl.core.verdict import failure_finding
from dflashctl.edges.log_tail import tail
from dflashctl.supervise.journal import progress_of
from dflashctl.supervise.sweep import sweep_previous

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.core.instance import InstanceRecord, Reason, Snapshot
    from dflashctl.core.plan import Plan
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance

LOCK_VARIABLE = "DFLASHCTL_LOCK_DESCRIPTOR"
_LOOK_S = 0.1


def start_detached(
    plan: Plan, env: Env, *, owned: OwnedInstance | None = None, wait: bool = True
) -> SuperviseResult:
    """Start it and return once it is ready or has failed; Ctrl-C leaves it running and says so in the result.

    `owned` hands its lock over: from then on the detached supervisor owns the instance.
    """
    held = owned if owned is not None else env.instances.own(plan.name)
    log, process = held.log_path, None
    try:
        with held:
            sweep_previous(held)
            plan_file = held.write("plan.json", dump_plan(plan))
            process = _spawn(plan_file, env, held.lock_descriptor(), str(log.with_name("supervisor.log")))
        if wait:
            _wait(env, plan.name, process)
    except KeyboardInterrupt:
        if process is None:
            raise
        return replace(_result(env, plan.name, log), interrupted=True)
    return _result(env, plan.name, log)


def _spawn(plan_file: Path, env: Env, lock: int, log: str) -> subprocess.Popen[bytes]:
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(
            f"'{log}' cannot be written: {error.strerror}", hint="remove it when it is a link"
        ) from error
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "dflashctl.supervise", str(plan_file)],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            pass_fds=(lock,),
            cwd=env.cwd,
            env={**env.environ, LOCK_VARIABLE: str(lock)},
        )
    finally:
        os.close(descriptor)


def _wait(env: Env, name: str, process: subprocess.Popen[bytes]) -> None:
    """Until the record says ready or over, or the supervisor is gone."""
    seen: InstanceRecord | None = None
    while process.poll() is None:
        record = env.instances.read(name).record
        if record is not None and record.supervisor is not None and record.supervisor.pid == process.pid:
            if record != seen:
                seen = record
                env.notify(progress_of(record))
            if record.phase is Phase.READY:
                process.returncode = 0  # it lives on, and is not ours to wait for
                return
        env.clock.sleep(_LOOK_S)


def _result(env: Env, name: str, log: Path) -> SuperviseResult:
    snapshot = env.instances.read(name)
    record = snapshot.record
    if record is None:
        raise StateError(
            f"the supervisor of {name!r} left no record: {snapshot.problem or 'it never began'}",
            hint=f"read {log.with_name('supervisor.log')}",
        )
    code = ExitCode.OK
    if record.phase in ENDED or not snapshot.supervised:
        code = ExitCode(record.exit_code) if record.exit_code is not None else ExitCode.GAVE_UP
    reason = _why(snapshot, record, log) if code is not ExitCode.OK else None
    findings = (failure_finding(reason, record.last_exit),) if reason is not None else ()
    return SuperviseResult(
        record=record,
        exit_code=code,
        exit_status=int(code),
        log=str(log),
        findings=findings,
        left_running=snapshot.supervised,
    )


def _why(snapshot: Snapshot, record: InstanceRecord, log: Path) -> Reason | None:
    """What the supervisor wrote of its end; when it was cut off, that it was, and its last word."""
    if record.phase in ENDED:
        return record.reason
    reason = status_of(snapshot, now_s=time.time()).reason
    last = tail((log.with_name("supervisor.log"),), 1)
    return replace(reason, text=f"{reason.text}: {last[0]}") if reason is not None and last else reason
