"""power: limits below the GPU's own, and persistence, which decide what speed a figure stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named, smi
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu

ID = "power"
NEEDS = ("gpus",)
SOURCE = "nvidia-smi -q -d POWER; figures made under a lowered limit do not compare with published ones"
_MUCH = 0.8


def check(facts: Facts) -> Iterator[Finding]:
    lowered = [
        gpu
        for gpu in facts.gpus
        if gpu.power_limit_w and gpu.power_limit_default_w and gpu.power_limit_w < gpu.power_limit_default_w
    ]
    if lowered:
        share = min((gpu.power_limit_w or 0) / (gpu.power_limit_default_w or 1) for gpu in lowered)
        first = lowered[0]
        yield found(
            ID,
            Severity.WARNING if share < _MUCH else Severity.NOTE,
            f"{gpus_named(lowered)} is limited to {first.power_limit_w:.0f} W of {first.power_limit_default_w:.0f} W: "
            "it will be slower than published figures",
            fix=f"if that is not on purpose: {_restored(lowered)}",
        )
    idle = [gpu for gpu in facts.gpus if gpu.persistence is False]
    if idle:
        yield found(
            ID,
            Severity.NOTE,
            f"persistence is off for {gpus_named(idle)}: the driver unloads between runs and starts are slower",
            fix="sudo nvidia-smi -pm 1   (or run nvidia-persistenced)",
        )


def _restored(lowered: list[Gpu]) -> str:
    """One command for each limit: unlike GPUs have unlike ones."""
    defaults = sorted({gpu.power_limit_default_w or 0 for gpu in lowered}, reverse=True)
    return " && ".join(
        f"sudo {smi([gpu for gpu in lowered if gpu.power_limit_default_w == watts], f'-pl {watts:.0f}')}"
        for watts in defaults
    )
