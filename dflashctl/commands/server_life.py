"""Whether the server of an instance that a benchmark measures lived through a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.commands.live_server import SERVING, LiveServer
from dflashctl.core.bench_record import RequestError
from dflashctl.core.verdict import signal_name

if TYPE_CHECKING:
    from dflashctl.core.bench_result import RunSummary
    from dflashctl.core.instance import Identity, LastExit, Snapshot
    from dflashctl.env import Env

_LOOKS = 20
_EVERY_S = 0.1  # the supervisor writes an end down only after the server's connections have broken
_BROKEN = frozenset({RequestError.CONNECT.value, RequestError.CLOSED.value, RequestError.RESET.value})


def life_of(env: Env, server: LiveServer) -> Identity | None:
    """The process that serves now; None for a server that is not ours."""
    record = env.instances.read(server.name).record if server.name is not None else None
    return record.server if record is not None else None


def ended(env: Env, server: LiveServer, before: Identity | None, summary: RunSummary) -> str | None:
    """That the process `before` ended, and how; None while it lives, or when no connection broke."""
    if server.name is None or not _BROKEN.intersection(summary.errors_by_kind):
        return None
    for look in range(_LOOKS):
        if look:
            env.clock.sleep(_EVERY_S)
        snapshot = env.instances.read(server.name)
        if not _lives(snapshot, before):
            how = snapshot.record.last_exit if snapshot.record is not None else None
            return f"the server {server.name!r} ended meanwhile{_told(how)}"
    return None


def _lives(snapshot: Snapshot, before: Identity | None) -> bool:
    record = snapshot.record
    return snapshot.supervised and record is not None and record.phase in SERVING and record.server == before


def _told(last: LastExit | None) -> str:
    if last is None:
        return ""
    return f" ({signal_name(last.signal)})" if last.signal is not None else f" (exit status {last.status})"
