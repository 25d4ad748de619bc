"""pcie: a GPU that runs on fewer PCIe lanes than it and its slot have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "pcie"
NEEDS = ("gpus",)
SOURCE = "nvidia-smi -q, GPU Link Info; idle GPUs lower the generation to save power, never the width"


def check(facts: Facts) -> Iterator[Finding]:
    narrow = [
        gpu
        for gpu in facts.gpus
        if gpu.pcie_width and gpu.pcie_width_max and gpu.pcie_width < gpu.pcie_width_max
    ]
    if narrow:
        yield found(
            ID,
            Severity.WARNING,
            f"{gpus_named(narrow)} runs on x{narrow[0].pcie_width} of its x{narrow[0].pcie_width_max} PCIe lanes: "
            "loading weights takes longer",
            fix="reseat the board or its riser; look at: nvidia-smi -q -d PCIE",
        )
    slow = [
        gpu
        for gpu in facts.gpus
        if (gpu.utilization_percent or 0) > 0
        and gpu.pcie_generation
        and gpu.pcie_generation_max
        and gpu.pcie_generation < gpu.pcie_generation_max
    ]
    if slow:
        yield found(
            ID,
            Severity.NOTE,
            f"{gpus_named(slow)} works at PCIe generation {slow[0].pcie_generation} "
            f"of {slow[0].pcie_generation_max} while busy",
        )
