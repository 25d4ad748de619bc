"""The plan's own server, when it runs already: what it holds is not counted against the plan."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.machine import Gpu, Machine


@dataclass(frozen=True, kw_only=True)
class RunningServer:
    """`pids` are those of all its processes, `gpus` UUIDs; `phase` is the instance's phase in words."""

    name: str
    phase: str
    url: str
    port: int
    gpus: tuple[str, ...] = ()
    pids: tuple[int, ...] = ()


def without_server(machine: Machine, server: RunningServer) -> Machine:
    """The machine as it will be when that server has stopped: its GPU memory is free, its processes are gone."""
    return replace(machine, gpus=tuple(_without(gpu, frozenset(server.pids)) for gpu in machine.gpus))


def _without(gpu: Gpu, pids: frozenset[int]) -> Gpu:
    free = gpu.memory_free_bytes
    if free is not None:
        freed = sum(p.memory_bytes or 0 for p in gpu.processes if p.pid in pids)
        usable = gpu.memory_usable_bytes
        free = free + freed if usable is None else min(usable, free + freed)
    others = tuple(p for p in gpu.processes if p.pid not in pids)
    return replace(gpu, memory_free_bytes=free, processes=others)
