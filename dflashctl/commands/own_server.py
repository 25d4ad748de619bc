"""The server that a request would start, when it runs already: its GPUs are its own, not taken by somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.running import RunningServer

if TYPE_CHECKING:
    from dflashctl.core.machine import Machine
    from dflashctl.core.options import PlanRequest
    from dflashctl.env import Env


def own_server(env: Env, request: PlanRequest) -> RunningServer | None:
    """The instance that `up` would start, when its server runs already on this machine; an owner without one has no GPU."""
    if request.machine is not None:
        return None
    known = env.instances.read(request.name or env.profiles.find(request.profile).name)
    record = known.record
    if not known.supervised or record is None or record.served is None:
        return None
    if record.server is None and record.container is None:
        return None
    served = record.served
    return RunningServer(
        name=known.name,
        phase=record.phase.value,
        url=served.url,
        port=served.port,
        gpus=served.gpus,
        pids=env.instances.members(known.name),
    )


def gpus_kept(server: RunningServer | None, machine: Machine, need: int) -> tuple[str, ...] | None:
    """The GPUs that the server has, where the same plan still wants as many: it is planned for those, not for better ones."""
    if server is None or len(server.gpus) != need or any(machine.gpu(key) is None for key in server.gpus):
        return None
    return server.gpus
