"""Machine: what a host has, as plain data; what could not be read is None and listed in `unknown`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class LinkKind(str, Enum):
    """How two GPUs reach each other, nearest first."""

    NVLINK = "nvlink"
    PIX = "pix"
    PXB = "pxb"
    PHB = "phb"
    NODE = "node"
    SYS = "sys"


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    pid: int
    memory_bytes: int | None = None
    name: str | None = None


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """NVSwitch fabric registration: healthy is state `completed` and status `success`."""

    state: str | None = None
    status: str | None = None
    clique_id: int | None = None
    cluster_uuid: str | None = None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU; sizes in bytes, power in watts, clocks in MHz; `uuid` identifies it, `index` only orders it."""

    index: int
    uuid: str
    name: str
    memory_total_bytes: int
    memory_free_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    mig_enabled: bool | None = None
    numa_node: int | None = None
    nvlinks_active: int | None = None
    nvlinks_total: int | None = None
    fabric: Fabric | None = None
    processes: tuple[GpuProcess, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Link:
    """The connection of GPUs `a` < `b` (indices)."""

    a: int
    b: int
    kind: LinkKind
    p2p: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A host: GPUs by index, their links, the driver, and why GPUs are absent when they are."""

    hostname: str | None = None
    gpus: tuple[Gpu, ...] = ()
    links: tuple[Link, ...] = ()
    driver_version: str | None = None
    cuda_version: str | None = None
    gpu_problem: str | None = None
    cpu_count: int | None = None
    memory_total_bytes: int | None = None
    assumed: bool = False
    unknown: tuple[str, ...] = field(default=())

    def gpu(self, key: str) -> Gpu | None:
        """The GPU with that index or UUID (a unique prefix of the UUID serves), else None."""
        if key.isdigit():
            return next((g for g in self.gpus if g.index == int(key)), None)
        hits = [g for g in self.gpus if g.uuid == key or (len(key) >= len("GPU-12345678") and g.uuid.startswith(key))]
        return hits[0] if len(hits) == 1 else None
