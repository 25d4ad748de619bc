"""deep_cuda: CUDA started for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

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
    if deep is None or not deep.cuda_error:
        return
    meaning, fix = _MEANINGS.get(deep.cuda_error, (deep.cuda_error_text or "see NVIDIA's driver API", _LOOK))
    yield found(
        ID,
        Severity.ERROR,
        f"CUDA does not start: error {deep.cuda_error}, {meaning}",
        detail=deep.cuda_error_text,
        fix=fix,
    )
