"""nvlink_lanes: NVLink lanes that are down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.assumed import kind_of
from dflashctl.core.check import error_or, found, gpus_named, ranges
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu

ID = "nvlink_lanes"
NEEDS = ("gpus",)
SOURCE = (
    "a GPU with lanes down still works, and every collective runs at its pace; nvidia-smi nvlink --status"
)


def check(facts: Facts) -> Iterator[Finding]:
    """On boards with a fabric every lane belongs up; a PCIe board may have none, or a bridge's few.

    One GPU of such a board in a virtual machine of its own is a partition without links (Fabric Manager user guide,
    shared NVSwitch model): nothing is wrong with it.
    """
    weak = [gpu for gpu in facts.gpus if _missing(gpu, facts.gpus) > 0]
    if not weak:
        return
    if len(facts.machine.gpus) == 1 and not weak[0].nvlinks_active:
        yield found(ID, Severity.NOTE, f"{gpus_named(weak)}: no NVLink lane is up, and one GPU needs none")
        return
    together = facts.ranks > 1
    yield found(
        ID,
        error_or(if_planned=facts.needs_gpus and together),
        f"{gpus_named(weak)}: {_most(weak, facts.gpus)} NVLink lanes are down",
        detail="; ".join(_lanes(gpu) for gpu in weak),
        fix="choose other GPUs (--gpus), or have the board reset or serviced; look at: nvidia-smi nvlink --status",
    )


def _missing(gpu: Gpu, all_gpus: tuple[Gpu, ...]) -> int:
    """Lanes below what its kind has, or below its like on this machine where the kind is not known."""
    if gpu.nvlinks_active is None or not (gpu.fabric and gpu.fabric.supported):
        return 0
    kind = kind_of(gpu.name)
    like = [g.nvlinks_active or 0 for g in all_gpus if g.name == gpu.name]
    expected = kind.nvlinks if kind and kind.nvlinks else max(like)
    return max(expected, *like) - gpu.nvlinks_active


def _most(weak: list[Gpu], all_gpus: tuple[Gpu, ...]) -> str:
    counts = sorted({_missing(gpu, all_gpus) for gpu in weak})
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _lanes(gpu: Gpu) -> str:
    down = f", down: {ranges(sorted(gpu.nvlinks_down))}" if gpu.nvlinks_down else ""
    return f"GPU {gpu.index}: {gpu.nvlinks_active} of {gpu.nvlinks_total} up{down}"
