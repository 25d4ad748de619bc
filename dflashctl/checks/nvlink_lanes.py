"""nvlink_lanes: NVLink lanes that are down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.assumed import kind_of
from dflashctl.core.check import error_or, found, gpus_named, ranges
from dflashctl.core.findings import Severity
from dflashctl.core.machine import LinkKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu, Machine

ID = "nvlink_lanes"
NEEDS = ("gpus",)
SOURCE = (
    "a GPU with lanes down still works, and every collective runs at its pace; nvidia-smi nvlink --status"
)


def check(facts: Facts) -> Iterator[Finding]:
    """On boards with a fabric every lane belongs up; without one, as many as its like that are joined by NVLink have.

    A PCIe board may have none up, or a bridge's few: what all alike have is no fault.
    One GPU of such a board in a virtual machine of its own is a partition without links (Fabric Manager user guide,
    shared NVSwitch model): nothing is wrong with it.
    """
    weak = {gpu: missing for gpu in facts.gpus if (missing := _missing(gpu, facts.machine)) > 0}
    if not weak:
        return
    if len(facts.machine.gpus) == 1 and not facts.machine.gpus[0].nvlinks_active:
        yield found(ID, Severity.NOTE, f"{gpus_named(weak)}: no NVLink lane is up, and one GPU needs none")
        return
    together = facts.ranks > 1
    yield found(
        ID,
        error_or(if_planned=facts.needs_gpus and together),
        f"{gpus_named(weak)}: {_span(weak.values())} NVLink lanes are down",
        detail="; ".join(_lanes(gpu) for gpu in weak),
        fix="choose other GPUs (--gpus), or have the board reset or serviced; look at: nvidia-smi nvlink --status",
    )


def _missing(gpu: Gpu, machine: Machine) -> int:
    """Lanes below what its kind has, or below its like on this machine where the kind or the fabric says nothing."""
    if gpu.nvlinks_active is None:
        return 0
    if gpu.fabric and gpu.fabric.supported:
        kind = kind_of(gpu.name)
        expected = kind.nvlinks or 0 if kind else 0
        like = [other for other in machine.gpus if other.name == gpu.name]
    else:
        # A GPU that no pair has is without a bridge, or outside its fabric, which is the topology check's matter.
        joined = {
            index for link in machine.links if link.kind is LinkKind.NVLINK for index in (link.a, link.b)
        }
        if gpu.index not in joined:
            return 0
        expected = 0
        like = [other for other in machine.gpus if other.name == gpu.name and other.index in joined]
    return max(expected, *(other.nvlinks_active or 0 for other in like)) - gpu.nvlinks_active


def _span(counts: Collection[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low} to {high}"


def _lanes(gpu: Gpu) -> str:
    down = f", down: {ranges(sorted(gpu.nvlinks_down))}" if gpu.nvlinks_down else ""
    return f"GPU {gpu.index}: {gpu.nvlinks_active} of {gpu.nvlinks_total} up{down}"
