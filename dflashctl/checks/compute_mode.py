"""compute_mode: GPUs that refuse processes, or take only one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named, smi
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "compute_mode"
NEEDS = ("gpus",)
SOURCE = "nvidia-smi --help: compute mode PROHIBITED forbids all contexts, EXCLUSIVE_PROCESS allows one"


def check(facts: Facts) -> Iterator[Finding]:
    closed = [gpu for gpu in facts.gpus if gpu.compute_mode == "prohibited"]
    if closed:
        yield found(
            ID,
            Severity.ERROR,
            f"{gpus_named(closed)} allows no CUDA process (compute mode prohibited)",
            fix=f"sudo {smi(closed, '-c DEFAULT')}",
        )
    single = [gpu for gpu in facts.gpus if (gpu.compute_mode or "").startswith("exclusive")]
    if single:
        yield found(
            ID,
            Severity.WARNING,
            f"{gpus_named(single)} allows one CUDA process only, and SGLang may open more",
            fix=f"sudo {smi(single, '-c DEFAULT')}",
        )
