"""Stop: ask a supervisor from outside, and see to it that nothing of its server is left."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from dflashctl.core.errors import Unavailable
from dflashctl.edges import processes, sockets

if TYPE_CHECKING:
    from dflashctl.core.instance import Identity, InstanceRecord, Served, Snapshot


def owner_of(snapshot: Snapshot) -> Identity | None:
    """Who holds the lock: by the lock itself, else as the record names that pid, perhaps of another namespace."""
    if snapshot.owner is not None:
        return snapshot.owner
    identity = snapshot.record.supervisor if snapshot.record else None
    return identity if identity is not None and identity.pid == snapshot.owner_pid else None


def ask_to_stop(snapshot: Snapshot) -> bool:
    """TERM to who holds the lock; False when it is not known or gone. Unavailable when it lives out of our reach."""
    identity = owner_of(snapshot)
    if identity is None:
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
    """KILL who holds the lock; the guard then ends the server."""
    identity = owner_of(snapshot)
    return identity is not None and not snapshot.brief and processes.send(identity, signal.SIGKILL)


def port_owner(served: Served) -> str | None:
    """Who keeps a server from listening on the port; None when it is free."""
    if sockets.can_bind(served.host, served.port):
        return None
    held = sockets.listeners(served.port, served.host)
    return held[0].describe() if held else "a process that cannot be seen from here"


def member_pids(record: InstanceRecord) -> frozenset[int]:
    """The processes of the record's sessions that live now."""
    return frozenset(stat.pid for stat in processes.session_members(record.sessions))
