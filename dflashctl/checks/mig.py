"""mig: MIG mode, in which no engine can use a whole GPU and no two GPUs can work together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import error_or, found, gpus_named, smi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "mig"
NEEDS = ("gpus",)
SOURCE = (
    "NVIDIA/nccl#1241: NCCL cannot span MIG instances; the memory of a MIG instance is a part of the GPU's"
)


def check(facts: Facts) -> Iterator[Finding]:
    cut = [gpu for gpu in facts.gpus if gpu.mig_enabled]
    if cut:
        yield found(
            ID,
            error_or(if_planned=facts.needs_gpus),
            f"MIG is on for {gpus_named(cut)}: a server gets no whole GPU there",
            detail="; ".join(f"GPU {gpu.index}: {len(gpu.mig_slices)} instances" for gpu in cut),
            fix=f"choose other GPUs, or with nothing running: sudo {smi(cut, '-mig 0')}",
        )
