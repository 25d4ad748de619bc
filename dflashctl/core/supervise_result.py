"""Supervise result: how the supervision of a server ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.errors import ExitCode
    from dflashctl.core.findings import Finding
    from dflashctl.core.instance import InstanceRecord


@dataclass(frozen=True, kw_only=True)
class SuperviseResult:
    """`record` as it was last written. `exit_status` is what the process should end with.

    It equals `exit_code` except as PID 1, where a crashed server's own status is handed on (128 + n for a signal).
    `findings` explain a failure. `left_running` says that the server goes on under a detached supervisor.
    `screen_stuck` says that nobody reads our output any more: end by os._exit, as writing would wait for ever.
    """

    record: InstanceRecord
    exit_code: ExitCode
    exit_status: int
    log: str
    findings: tuple[Finding, ...] = ()
    left_running: bool = False
    screen_stuck: bool = False
