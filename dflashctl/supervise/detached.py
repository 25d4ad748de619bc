"""Detached: how a start in the background is, or how it ended."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.errors import ExitCode, StateError
from dflashctl.core.instance import ENDED, Phase, Reason
from dflashctl.core.status import status_of
from dflashctl.core.supervise_result import SuperviseResult
from dflashctl.core.verdict import failure_finding
from dflashctl.edges.log_tail import tail
from dflashctl.supervise.signals import STOPS

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.core.instance import InstanceRecord, Snapshot
    from dflashctl.supervise.detached_start import DetachedStart


def result_of(start: DetachedStart) -> SuperviseResult:
    """How it is now; `left_running` when its supervisor lives, else `exit_code` and `findings` tell how it ended."""
    snapshot, status = start.outcome()
    record = snapshot.record
    if record is None:
        raise StateError(
            f"the supervisor of {snapshot.name!r} left no record: {snapshot.problem or 'it never began'}",
            hint=f"read {start.log.with_name('supervisor.log')}",
        )
    code = ExitCode.OK if status is None else _code(record, status)
    findings = (failure_finding(_why(snapshot, record, start.log), record.last_exit),) if code else ()
    return SuperviseResult(
        record=record,
        exit_code=code,
        exit_status=int(code),
        log=str(start.log),
        findings=findings,
        left_running=status is None,
    )


def _code(record: InstanceRecord, status: int) -> ExitCode:
    """How a start ended whose supervisor is gone; one that `down` has put in order since was stopped, not lost."""
    if record.phase in ENDED and record.exit_code is not None:
        return ExitCode(record.exit_code)
    asked_to = -status in STOPS  # before it could listen for signals
    if status == 0 or asked_to or record.phase is Phase.STOPPED:
        return ExitCode.OK
    return ExitCode(status) if status in set(ExitCode) else ExitCode.GAVE_UP


def _why(snapshot: Snapshot, record: InstanceRecord, log: Path) -> Reason:
    """What the supervisor wrote of its end; when it was cut off, that it was, and its last word."""
    if record.phase in ENDED and record.reason is not None:
        return record.reason
    lost = Reason(code="supervisor_ended", text="the supervisor ended before the server was ready")
    reason = status_of(snapshot, now_s=time.time()).reason or lost
    last = tail((log.with_name("supervisor.log"),), 1)
    return replace(reason, text=f"{reason.text}: {last[0]}") if last else reason
