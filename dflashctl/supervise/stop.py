"""Stop: ask a supervisor from outside, and see to it that nothing of its server is left."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from dflashctl.core.errors import Unavailable
from dflashctl.edges import processes, sockets

if TYPE_CHECKING:
    from dflashctl.core.instance import InstanceRecord, Served, Snapshot


def ask_to_stop(snapshot: Snapshot) -> bool:
    """TERM to that very supervisor; False when it is gone already. Unavailable when it lives out of our reach."""
    identity = snapshot.record.supervisor if snapshot.record else None
    if identity is None or (snapshot.owner_pid is not None and snapshot.owner_pid != identity.pid):
        return False
    if not processes.is_here(identity):
        raise Unavailable(
            f"the supervisor of {snapshot.name!r} runs in another container or pid namespace",
            hint="stop it where it was started",
        )
    sent = processes.send(identity, signal.SIGTERM)
    processes.send(identity, signal.SIGCONT)
    return sent


def force_stop(snapshot: Snapshot) -> bool:
    """KILL that very supervisor; its guard then ends the server."""
    identity = snapshot.record.supervisor if snapshot.record else None
    return identity is not None and processes.send(identity, signal.SIGKILL)


def port_owner(served: Served) -> str | None:
    """Who keeps a server from listening on the port; None when it is free."""
    if sockets.can_bind(served.host, served.port):
        return None
    held = sockets.listeners(served.port, served.host)
    return held[0].describe() if held else "a process that cannot be seen from here"


def member_pids(record: InstanceRecord) -> frozenset[int]:
    """The processes of the record's sessions that live now."""
    return frozenset(stat.pid for stat in processes.session_members(record.sessions))
