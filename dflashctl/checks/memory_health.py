"""memory_health: ECC errors, rows waiting for a reset, and remapping that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named, smi
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "memory_health"
NEEDS = ("gpus",)
SOURCE = "NVIDIA GPU memory error management guide: a failed row remap means service, a pending one a reset"


def check(facts: Facts) -> Iterator[Finding]:
    failed = [gpu for gpu in facts.gpus if gpu.row_remap and gpu.row_remap.failed]
    if failed:
        yield found(
            ID,
            Severity.ERROR,
            f"{gpus_named(failed)} could not replace a broken memory row: it needs service",
            detail=smi(failed, "-q -d ROW_REMAPPER"),
            fix=f"use other GPUs (--gpus) and report {'these' if len(failed) > 1 else 'this one'}",
        )
    pending = [
        gpu
        for gpu in facts.gpus
        if gpu not in failed and ((gpu.row_remap and gpu.row_remap.pending) or gpu.retired_pages_pending)
    ]
    if pending:
        yield found(
            ID,
            Severity.WARNING,
            f"{gpus_named(pending)} has a broken memory row that is replaced at the next reset",
            fix=f"when nothing runs there: sudo {smi(pending, '--gpu-reset')} (or reboot)",
        )
    counted = [gpu for gpu in facts.gpus if gpu.ecc_uncorrected_volatile]
    if counted:
        yield found(
            ID,
            Severity.WARNING,
            f"{gpus_named(counted)} had uncorrectable memory errors since the last reset",
            detail="; ".join(f"GPU {gpu.index}: {gpu.ecc_uncorrected_volatile}" for gpu in counted),
            fix="restart what ran there, and reset the GPU before the next server",
        )
