"""Sweep: what an earlier supervisor of this instance left behind, found by session and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError
from dflashctl.edges import processes
from dflashctl.supervise.docker_runtime import remove_container

if TYPE_CHECKING:
    from dflashctl.core.instance import InstanceRecord
    from dflashctl.edges.guard import Stat
    from dflashctl.ports.instances import OwnedInstance


def sweep_previous(owned: OwnedInstance) -> int:
    """End the processes that the previous life left; how many. StateError when some survive."""
    if owned.unclean and owned.previous is not None:
        pid = owned.previous.supervisor.pid if owned.previous.supervisor else None
        text = f"unclean end: supervisor {pid} went without a goodbye in phase {owned.previous.phase.value}"
        owned.event("unclean_end", text)
    swept = sweep(owned.previous)
    if swept:
        owned.event("swept", f"{swept} processes of the previous life were ended")
    for stat in unproven(owned.previous):
        owned.event("left_alone", f"pid {stat.pid} ({stat.comm}) bears an old session number of the server")
    owned.forget_leftovers()
    return swept


def unproven(record: InstanceRecord | None) -> tuple[Stat, ...]:
    """Processes that could be the previous server's by their session's number alone: left alive."""
    return processes.unproven_members(record.sessions) if record is not None else ()


def sweep(record: InstanceRecord | None) -> int:
    """Kill all members of the record's sessions; how many there were. StateError when some survive."""
    if record is None:
        return 0
    if record.container is not None:
        return int(remove_container(record.container))
    found = processes.session_members(record.sessions)
    left = processes.kill_sessions(record.sessions) if found else ()
    if left:
        pids = ", ".join(str(stat.pid) for stat in left)
        raise StateError(
            f"processes of the previous server survive SIGKILL: {pids}", hint="look at them with ps"
        )
    return len(found)
