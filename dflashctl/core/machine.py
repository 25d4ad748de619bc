"""Machine: what a host has, as plain data; what could not be read is None and listed in `unknown`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dflashctl.core.host import Host, Software  # noqa: TC001 - read at run time by the loader

_UUID_PREFIX_LENGTH = len("GPU-12345678")


class LinkKind(str, Enum):
    """How two GPUs reach each other, nearest first; `unknown` where the driver does not tell."""

    NVLINK = "nvlink"
    PIX = "pix"
    PXB = "pxb"
    PHB = "phb"
    NODE = "node"
    SYS = "sys"
    UNKNOWN = "unknown"


class GpuAbsence(str, Enum):
    """Why a machine shows no usable GPU."""

    NO_HARDWARE = "no_hardware"
    NO_LIBRARY = "no_library"
    NO_DRIVER = "no_driver"
    VERSION_MISMATCH = "version_mismatch"
    NO_DEVICES_IN_CONTAINER = "no_devices_in_container"
    DEVICES_LOST = "devices_lost"
    NO_PERMISSION = "no_permission"
    HIDDEN = "hidden"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class GpuProcess:
    """A process that holds memory of a GPU; `own` when it is of the user who looks."""

    pid: int
    memory_bytes: int | None = None
    name: str | None = None
    own: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """NVSwitch fabric registration: healthy is state `completed` and status `success`.

    State: not_supported, not_started, in_progress, completed. `status` is `success` or NVML's error in words.
    `troubles` are the words of the health mask that say something is wrong, None where the driver has no mask.
    """

    state: str | None = None
    status: str | None = None
    clique_id: int | None = None
    cluster_uuid: str | None = None
    troubles: tuple[str, ...] | None = None

    @property
    def supported(self) -> bool:
        """Whether the board has an NVSwitch fabric at all."""
        return self.state not in {None, "not_supported"}


@dataclass(frozen=True, kw_only=True)
class RowRemap:
    """HBM row remapping: counts of remapped rows, and whether a reset is owed or a remapping failed."""

    correctable: int = 0
    uncorrectable: int = 0
    pending: bool = False
    failed: bool = False


@dataclass(frozen=True, kw_only=True)
class MigSlice:
    """One MIG instance of a GPU."""

    uuid: str
    memory_total_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU; sizes in bytes, power in watts, clocks in MHz; `uuid` identifies it, `index` only orders it.

    `visible` is False when CUDA_VISIBLE_DEVICES hides it. `throttle_reasons` are NVML's clock event reasons in
    words; `xids` are error codes of the kernel log. `nvlinks_down` are the numbers of inactive lanes.
    """

    index: int
    uuid: str
    name: str
    memory_total_bytes: int | None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    compute_capability: tuple[int, int] | None = None
    bus_id: str | None = None
    visible: bool = True
    mig_enabled: bool | None = None
    mig_slices: tuple[MigSlice, ...] = ()
    compute_mode: str | None = None
    persistence: bool | None = None
    numa_node: int | None = None
    ecc_enabled: bool | None = None
    ecc_uncorrected_volatile: int | None = None
    ecc_uncorrected_lifetime: int | None = None
    row_remap: RowRemap | None = None
    retired_pages_pending: bool | None = None
    recovery_action: str | None = None
    xids: tuple[int, ...] | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    utilization_percent: int | None = None
    clock_sm_mhz: int | None = None
    clock_sm_max_mhz: int | None = None
    clock_memory_mhz: int | None = None
    clock_memory_max_mhz: int | None = None
    throttle_reasons: tuple[str, ...] | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    nvlinks_active: int | None = None
    nvlinks_total: int | None = None
    nvlinks_down: tuple[int, ...] = ()
    nvlink_version: str | None = None
    fabric: Fabric | None = None
    processes: tuple[GpuProcess, ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def capability(self) -> str | None:
        """Compute capability as people write it: "10.3"."""
        return (
            f"{self.compute_capability[0]}.{self.compute_capability[1]}" if self.compute_capability else None
        )

    @property
    def memory_usable_bytes(self) -> int | None:
        """All but the driver's own reserve."""
        if self.memory_total_bytes is None:
            return None
        return self.memory_total_bytes - (self.memory_reserved_bytes or 0)

    @property
    def memory_used_bytes(self) -> int | None:
        """What processes and leaks hold, without the driver's own reserve."""
        usable = self.memory_usable_bytes
        if usable is None or self.memory_free_bytes is None:
            return None
        return max(0, usable - self.memory_free_bytes)


@dataclass(frozen=True, kw_only=True)
class GpuActivity:
    """The GPUs with only what changes while a server runs; `unreadable` are those that the driver cannot open now."""

    gpus: tuple[Gpu, ...] = ()
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Link:
    """The connection of GPUs `a` < `b` (indices); `path` is the PCIe path, whatever `kind` says of NVLink.

    `p2p` is whether the driver allows peer access at all.
    """

    a: int
    b: int
    kind: LinkKind
    p2p: bool | None = None
    path: LinkKind | None = None


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A host: GPUs by index, their links, the driver, and why GPUs are absent when they are.

    `gpu_problem` is the sentence to `gpu_absence`. `visible_devices` is CUDA_VISIBLE_DEVICES as it was set.
    `gpus_unreadable` are GPUs that the driver counts but cannot open, with its reason.
    `driver_library_version` is that of the user-space library, `driver_version` that of the loaded module.
    """

    hostname: str | None = None
    gpus: tuple[Gpu, ...] = ()
    links: tuple[Link, ...] = ()
    driver_version: str | None = None
    driver_library_version: str | None = None
    cuda_version: str | None = None
    gpu_absence: GpuAbsence | None = None
    gpu_problem: str | None = None
    gpus_unreadable: tuple[str, ...] = ()
    visible_devices: str | None = None
    cpu_count: int | None = None
    memory_total_bytes: int | None = None
    assumed: bool = False
    host: Host | None = None
    software: Software | None = None
    unknown: tuple[str, ...] = ()

    def gpu(self, key: str) -> Gpu | None:
        """The GPU with that index or UUID (a unique prefix of the UUID serves), else None."""
        if key.isdigit():
            return next((g for g in self.gpus if g.index == int(key)), None)
        long_enough = len(key) >= _UUID_PREFIX_LENGTH
        hits = [g for g in self.gpus if g.uuid == key or (long_enough and g.uuid.startswith(key))]
        return hits[0] if len(hits) == 1 else None

    def link(self, a: int, b: int) -> Link | None:
        """The connection of two GPU indices in either order."""
        low, high = min(a, b), max(a, b)
        return next((link for link in self.links if (link.a, link.b) == (low, high)), None)

    @property
    def visible_gpus(self) -> tuple[Gpu, ...]:
        return tuple(gpu for gpu in self.gpus if gpu.visible)
