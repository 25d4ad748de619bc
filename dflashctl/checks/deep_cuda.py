"""deep_cuda: CUDA started for real, on as many GPUs as were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.deep import DeepFacts
    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu

ID = "deep_cuda"
NEEDS = ("tried_cuda",)
SOURCE = (
    "huggingface/huggingface_hub#4128: error 802 on every multi-GPU job although nvidia-smi shows the GPUs"
)
_LOOK = "look at: nvidia-smi, and sudo dmesg | grep -i nvrm"
_MEANINGS = {
    2: ("out of memory: another process holds the GPU", "stop it, or choose other GPUs: --gpus LIST"),
    100: ("CUDA sees no GPU", "unset CUDA_VISIBLE_DEVICES; in a container use --gpus all"),
    802: (
        "the NVSwitch fabric is not ready, though the driver lists the GPUs",
        "start the fabric manager of the driver's version; NVLink 5 boards then need a reset or reboot",
    ),
    803: ("driver and CUDA library do not go together", "reboot after the driver update"),
    804: (
        "forward compatibility is not supported on this GPU",
        "remove the cuda-compat package, or update the driver",
    ),
    999: ("unknown error of the driver", "look at: sudo dmesg | grep -i nvrm; often a reboot"),
}


def check(facts: Facts) -> Iterator[Finding]:
    deep = facts.deep
    if deep is None:
        return
    if deep.cuda_error is None:
        yield found(ID, Severity.ERROR, f"CUDA does not start: {deep.cuda_error_text}", fix=_LOOK)
    elif deep.cuda_error:
        meaning, fix = _MEANINGS.get(
            deep.cuda_error, (deep.cuda_error_text or "see NVIDIA's driver API", _LOOK)
        )
        yield found(
            ID,
            Severity.ERROR,
            f"CUDA does not start: error {deep.cuda_error}, {meaning}",
            detail=deep.cuda_error_text,
            fix=fix,
        )
    else:
        yield from _missing(deep, facts.gpus)


def _missing(deep: DeepFacts, gpus: tuple[Gpu, ...]) -> Iterator[Finding]:
    """CUDA leaves out a GPU without a word. Of MIG slices it shows a process one at most, which is as it should be."""
    seen, asked = deep.cuda_devices, deep.gpus_asked
    if seen is not None and seen < asked and not any(gpu.mig_enabled for gpu in gpus):
        yield found(ID, Severity.ERROR, f"CUDA sees {seen} of the {asked} GPUs", fix=_LOOK)
