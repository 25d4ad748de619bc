"""Sweep: what an earlier supervisor of this instance left behind, found by session and ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError
from dflashctl.edges import processes
from dflashctl.supervise.docker_runtime import remove_container

if TYPE_CHECKING:
    from dflashctl.core.instance import InstanceRecord
    from dflashctl.ports.instances import OwnedInstance


@dataclass(frozen=True, kw_only=True)
class Swept:
    """How many processes were `ended`, and the pids of the `doubtful`: alive, as only a session's number speaks for them."""

    ended: int
    doubtful: tuple[int, ...] = ()


def sweep_previous(owned: OwnedInstance) -> Swept:
    """End the processes that the previous life left. StateError when some survive."""
    if owned.unclean and owned.previous is not None:
        pid = owned.previous.supervisor.pid if owned.previous.supervisor else None
        text = f"unclean end: supervisor {pid} went without a goodbye in phase {owned.previous.phase.value}"
        owned.event("unclean_end", text)
    ended = sweep(owned.previous)
    if ended:
        owned.event("swept", f"{ended} processes of the previous life were ended")
    doubtful = processes.unproven_members(owned.previous.sessions) if owned.previous is not None else ()
    for stat in doubtful:
        owned.event("left_alone", f"pid {stat.pid} ({stat.comm}) bears an old session number of the server")
    owned.forget_leftovers()
    return Swept(ended=ended, doubtful=tuple(stat.pid for stat in doubtful))


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
