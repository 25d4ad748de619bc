"""Why a machine shows no GPU: the driver's refusal and what the host shows, as one cause and one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dflashctl.core.machine import GpuAbsence


class NvmlRefusal(str, Enum):
    """How NVML refused to start, or that it started and counted no device."""

    NO_BINDING = "no_binding"
    LIBRARY_NOT_FOUND = "library_not_found"
    DRIVER_NOT_LOADED = "driver_not_loaded"
    VERSION_MISMATCH = "version_mismatch"
    NO_PERMISSION = "no_permission"
    UNKNOWN = "unknown"
    NO_DEVICES = "no_devices"


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What the host shows besides NVML: the kernel module's version, NVIDIA GPUs on the PCI bus, device files."""

    module_version: str | None = None
    pci_gpus: int = 0
    device_files: int = 0
    in_container: bool = False


def absence(refusal: NvmlRefusal, signs: Signs) -> tuple[GpuAbsence, str]:
    """The cause and the sentence about it."""
    if refusal is NvmlRefusal.VERSION_MISMATCH:
        return (
            GpuAbsence.VERSION_MISMATCH,
            "the NVIDIA driver was updated but its old kernel module is still loaded"
            + (f" ({signs.module_version})" if signs.module_version else ""),
        )
    if refusal is NvmlRefusal.NO_PERMISSION:
        return GpuAbsence.NO_PERMISSION, "this user may not open the NVIDIA device files"
    if refusal is NvmlRefusal.NO_BINDING:
        return GpuAbsence.NO_LIBRARY, "the Python package nvidia-ml-py cannot be imported"
    if signs.in_container and signs.module_version:
        return _in_container(refusal, signs)
    return _on_host(refusal, signs)


def _in_container(refusal: NvmlRefusal, signs: Signs) -> tuple[GpuAbsence, str]:
    if refusal is NvmlRefusal.UNKNOWN or signs.device_files:
        return GpuAbsence.DEVICES_LOST, "this container has lost its GPU devices; the host's driver is fine"
    return (
        GpuAbsence.NO_DEVICES_IN_CONTAINER,
        "this container was started without GPUs; its host has the driver",
    )


def _on_host(refusal: NvmlRefusal, signs: Signs) -> tuple[GpuAbsence, str]:
    if refusal is NvmlRefusal.UNKNOWN:
        return GpuAbsence.OTHER, "the NVIDIA driver does not answer (NVML says: unknown error)"
    gpus = f"{signs.pci_gpus} NVIDIA GPU{'s' if signs.pci_gpus > 1 else ''} on the PCI bus"
    if signs.module_version and refusal is NvmlRefusal.LIBRARY_NOT_FOUND:
        return (
            GpuAbsence.NO_LIBRARY,
            f"the kernel driver {signs.module_version} is loaded, but its library libnvidia-ml.so.1 is not found",
        )
    if signs.pci_gpus and not signs.module_version:
        return GpuAbsence.NO_DRIVER, f"{gpus}, but the NVIDIA driver is not loaded"
    if signs.pci_gpus:
        return GpuAbsence.OTHER, f"{gpus}, but the driver {signs.module_version} offers none of them"
    if signs.module_version or refusal is NvmlRefusal.DRIVER_NOT_LOADED:
        return (
            GpuAbsence.NO_HARDWARE,
            "the NVIDIA driver is installed, but there is no NVIDIA GPU on the PCI bus",
        )
    return GpuAbsence.NO_HARDWARE, "no NVIDIA GPU and no NVIDIA driver on this machine"
