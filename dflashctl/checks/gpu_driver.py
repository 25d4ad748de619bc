"""gpu_driver: whether the NVIDIA driver can be talked to at all, and what stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity
from dflashctl.core.machine import GpuAbsence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "gpu_driver"
NEEDS = ()
SOURCE = (
    "NVIDIA/nvidia-container-toolkit#48: a container loses its devices after a daemon-reload and NVML says "
    "`Unknown Error`; NVML refuses after an update until the module is reloaded"
)
_FIXES = {
    GpuAbsence.NO_HARDWARE: "dflashctl up tiny-cpu   (needs no GPU)",
    GpuAbsence.NO_LIBRARY: "install the driver's user-space libraries of the same version, or nvidia-ml-py",
    GpuAbsence.NO_DRIVER: "install the NVIDIA driver (580 or newer) and load it: sudo modprobe nvidia",
    GpuAbsence.VERSION_MISMATCH: "reboot, or stop all GPU processes and reload the nvidia modules",
    GpuAbsence.NO_DEVICES_IN_CONTAINER: "start the container with GPUs: docker run --gpus all --ipc=host ...",
    GpuAbsence.DEVICES_LOST: "create the container anew; use CDI devices so that it cannot recur",
    GpuAbsence.NO_PERMISSION: "ask for access to /dev/nvidia* (often a group such as video)",
    GpuAbsence.HIDDEN: "unset CUDA_VISIBLE_DEVICES",
    GpuAbsence.OTHER: "look at: sudo dmesg | grep -i nvrm",
}


def check(facts: Facts) -> Iterator[Finding]:
    cause = facts.machine.gpu_absence
    if cause is None or (facts.profile is not None and not facts.needs_gpus):
        return
    harmless = cause is GpuAbsence.NO_HARDWARE and facts.profile is None
    severity = Severity.NOTE if harmless else Severity.ERROR
    sentence = facts.machine.gpu_problem or f"no GPU can be used: {cause.value}"
    yield found(ID, severity, sentence, fix=_FIXES[cause])
