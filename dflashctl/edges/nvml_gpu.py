"""One GPU as NVML describes it: identity, memory, health, clocks, power, PCIe and the processes on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.machine import Gpu, GpuProcess, MigSlice, RowRemap
from dflashctl.edges.nvml import Asker
from dflashctl.edges.nvml_links import fabric, lanes

if TYPE_CHECKING:
    from collections.abc import Iterable

_COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")
_RECOVERY_ACTIONS = (
    "none",
    "gpu_reset",
    "node_reboot",
    "drain_p2p",
    "drain_and_reset",
    "recover_imex_domain",
    "bus_reset",
    "system_reboot",
)
# nvml.h, nvmlClocksEventReasons.
_THROTTLE_BITS = (
    (0x1, "gpu_idle"),
    (0x2, "applications_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal"),
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clocks"),
)
_UNCORRECTED, _VOLATILE, _LIFETIME = 1, 0, 1
_CLOCK_SM, _CLOCK_MEMORY, _TEMPERATURE = 1, 2, 0


def read_gpu(lib: Any, index: int, handle: Any) -> Gpu:
    """All facts of one GPU; what NVML refuses is None and named in `unknown`."""
    asker = Asker(lib)
    bus_id = _bus_id(asker, handle)
    memory = _memory(asker, handle)
    active, total, down, version = lanes(asker, handle)
    return Gpu(
        index=index,
        **identity(asker, index, handle),
        memory_total_bytes=memory[0],
        memory_free_bytes=memory[1],
        memory_reserved_bytes=memory[2],
        compute_capability=_pair(
            asker.ask("compute_capability", "nvmlDeviceGetCudaComputeCapability", handle)
        ),
        bus_id=bus_id,
        mig_enabled=_mig_enabled(asker, handle),
        mig_slices=_mig_slices(asker, handle),
        compute_mode=_word(_COMPUTE_MODES, asker.ask("compute_mode", "nvmlDeviceGetComputeMode", handle)),
        persistence=_flag(asker.ask("persistence", "nvmlDeviceGetPersistenceMode", handle)),
        numa_node=_numa_node(asker, handle, bus_id),
        nvlinks_active=active,
        nvlinks_total=total,
        nvlinks_down=down,
        nvlink_version=version,
        fabric=fabric(asker, handle),
        processes=_processes(asker, handle),
        **_health(asker, handle),
        **_activity(asker, handle),
        **_pcie(asker, handle),
        unknown=tuple(asker.unknown),
    )


def identity(asker: Asker, index: int, handle: Any) -> dict[str, Any]:
    """UUID and name; a lost GPU, whose handle may outlive it, tells neither."""
    return {
        "uuid": asker.ask("uuid", "nvmlDeviceGetUUID", handle) or f"unknown-{index}",
        "name": asker.ask("name", "nvmlDeviceGetName", handle) or "NVIDIA GPU",
    }


def read_activity(lib: Any, handle: Any) -> dict[str, Any]:
    """Only what changes while a server runs: memory, clocks, power, temperature, throttling."""
    asker = Asker(lib)
    total, free, reserved = _memory(asker, handle)
    return {
        "memory_total_bytes": total,
        "memory_free_bytes": free,
        "memory_reserved_bytes": reserved,
        **_activity(asker, handle),
    }


def _memory(asker: Asker, handle: Any) -> tuple[int | None, int | None, int | None]:
    """Total, free and driver's reserve in bytes; old drivers do not tell the reserve apart."""
    version = getattr(asker.lib, "nvmlMemory_v2", None)
    detailed = asker.quietly("nvmlDeviceGetMemoryInfo", handle, version) if version else None
    if detailed is not None:
        return int(detailed.total), int(detailed.free), int(detailed.reserved)
    plain = asker.ask("memory", "nvmlDeviceGetMemoryInfo", handle)
    return (int(plain.total), int(plain.free), None) if plain is not None else (None, None, None)


def _health(asker: Asker, handle: Any) -> dict[str, Any]:
    ecc = asker.ask("ecc", "nvmlDeviceGetEccMode", handle)
    rows = asker.ask("row_remap", "nvmlDeviceGetRemappedRows", handle)
    errors = ("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED)
    counts = [
        asker.ask("ecc_errors", *errors, counter) if ecc and ecc[0] else None
        for counter in (_VOLATILE, _LIFETIME)
    ]
    return {
        "ecc_enabled": _flag(ecc[0]) if ecc else None,
        "ecc_uncorrected_volatile": counts[0],
        "ecc_uncorrected_lifetime": counts[1],
        "row_remap": _rows(rows),
        "retired_pages_pending": _flag(
            asker.ask("retired_pages_pending", "nvmlDeviceGetRetiredPagesPendingStatus", handle)
        ),
        "recovery_action": _recovery_action(asker, handle),
    }


def _rows(rows: Any) -> RowRemap | None:
    if rows is None:
        return None
    return RowRemap(correctable=rows[0], uncorrectable=rows[1], pending=bool(rows[2]), failed=bool(rows[3]))


def _recovery_action(asker: Asker, handle: Any) -> str | None:
    field = getattr(asker.lib, "NVML_FI_DEV_GET_GPU_RECOVERY_ACTION", None)
    values = (
        asker.ask("recovery_action", "nvmlDeviceGetFieldValues", handle, [field])
        if field is not None
        else None
    )
    if values is None or values[0].nvmlReturn != 0:
        asker.note("recovery_action")
        return None
    return _word(_RECOVERY_ACTIONS, values[0].value.uiVal)


def _activity(asker: Asker, handle: Any) -> dict[str, Any]:
    reasons = asker.quietly("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:
        reasons = asker.ask("throttle_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    use = asker.ask("utilization", "nvmlDeviceGetUtilizationRates", handle)
    power = (
        "nvmlDeviceGetPowerUsage",
        "nvmlDeviceGetEnforcedPowerLimit",
        "nvmlDeviceGetPowerManagementDefaultLimit",
    )
    watts = [_watts(asker.ask("power", function, handle)) for function in power]
    clock, ceiling = "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo"
    return {
        "temperature_c": asker.ask("temperature", "nvmlDeviceGetTemperature", handle, _TEMPERATURE),
        "power_w": watts[0],
        "power_limit_w": watts[1],
        "power_limit_default_w": watts[2],
        "utilization_percent": int(use.gpu) if use is not None else None,
        "clock_sm_mhz": asker.ask("clocks", clock, handle, _CLOCK_SM),
        "clock_sm_max_mhz": asker.ask("clocks", ceiling, handle, _CLOCK_SM),
        "clock_memory_mhz": asker.ask("clocks", clock, handle, _CLOCK_MEMORY),
        "clock_memory_max_mhz": asker.ask("clocks", ceiling, handle, _CLOCK_MEMORY),
        "throttle_reasons": _throttle(reasons),
    }


def _pcie(asker: Asker, handle: Any) -> dict[str, Any]:
    return {
        "pcie_generation": asker.ask("pcie", "nvmlDeviceGetCurrPcieLinkGeneration", handle),
        "pcie_generation_max": asker.ask("pcie", "nvmlDeviceGetMaxPcieLinkGeneration", handle),
        "pcie_width": asker.ask("pcie", "nvmlDeviceGetCurrPcieLinkWidth", handle),
        "pcie_width_max": asker.ask("pcie", "nvmlDeviceGetMaxPcieLinkWidth", handle),
    }


def _bus_id(asker: Asker, handle: Any) -> str | None:
    info = asker.ask("bus_id", "nvmlDeviceGetPciInfo", handle)
    return _text(info.busId) if info is not None else None


def _numa_node(asker: Asker, handle: Any, bus_id: str | None) -> int | None:
    node: int | None = asker.quietly("nvmlDeviceGetNumaNodeId", handle)
    if node is None and bus_id:
        node = _sysfs_numa_node(bus_id)
    if node is None:
        asker.note("numa_node")
    return node


def _sysfs_numa_node(bus_id: str) -> int | None:
    """The kernel's word on it; -1 there means that it does not know. NVML writes the domain with 8 digits."""
    domain, rest = bus_id.lower().split(":", 1)
    try:
        node = int(Path(f"/sys/bus/pci/devices/{domain[-4:]}:{rest}/numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def _mig_enabled(asker: Asker, handle: Any) -> bool | None:
    """False where the GPU has no MIG at all: NVML then says `not supported`."""
    call = getattr(asker.lib, "nvmlDeviceGetMigMode", None)
    if call is None:
        return None
    try:
        return bool(call(handle)[0])
    except asker.lib.NVMLError as error:
        return False if error.value == asker.lib.NVML_ERROR_NOT_SUPPORTED else None


def _mig_slices(asker: Asker, handle: Any) -> tuple[MigSlice, ...]:
    count = asker.quietly("nvmlDeviceGetMaxMigDeviceCount", handle) or 0
    slices = []
    for number in range(count):
        piece = asker.quietly("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        uuid = asker.quietly("nvmlDeviceGetUUID", piece) if piece is not None else None
        if uuid:
            memory = asker.quietly("nvmlDeviceGetMemoryInfo", piece)
            slices.append(MigSlice(uuid=uuid, memory_total_bytes=int(memory.total) if memory else None))
    return tuple(slices)


def _processes(asker: Asker, handle: Any) -> tuple[GpuProcess, ...]:
    compute = asker.ask("processes", "nvmlDeviceGetComputeRunningProcesses", handle) or ()
    graphics = asker.quietly("nvmlDeviceGetGraphicsRunningProcesses", handle) or ()
    return tuple(_unique(_process(asker, item) for item in (*compute, *graphics)))


def _unique(processes: Iterable[GpuProcess]) -> list[GpuProcess]:
    return list({process.pid: process for process in processes}.values())


def _process(asker: Asker, item: Any) -> GpuProcess:
    name = asker.quietly("nvmlSystemGetProcessName", item.pid)
    return GpuProcess(
        pid=item.pid, memory_bytes=item.usedGpuMemory, name=_text(name) or None, own=_own(item.pid)
    )


def _own(pid: int) -> bool | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid == os.getuid()
    except OSError:
        return None


def _throttle(bits: int | None) -> tuple[str, ...] | None:
    return None if bits is None else tuple(word for bit, word in _THROTTLE_BITS if bits & bit)


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _pair(value: Any) -> tuple[int, int] | None:
    return None if value is None else (int(value[0]), int(value[1]))


def _word(words: tuple[str, ...], number: int | None) -> str | None:
    return words[number] if number is not None and 0 <= number < len(words) else None


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
