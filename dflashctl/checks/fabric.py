"""fabric: registration with the NVSwitch fabric, without which CUDA does not even start on such boards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity
from dflashctl.core.gpu_health import MILD_TROUBLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Fabric, Gpu

ID = "fabric"
NEEDS = ("gpus",)
SOURCE = (
    "Azure/azhpc-images#506: state Completed with status `Insufficient Resources` passes a naive check; "
    "pytorch/pytorch#35710: error 802 although nvidia-smi lists all GPUs"
)
_START = "start the fabric manager of the driver's version: sudo systemctl restart nvidia-fabricmanager"
_RESET = f"{_START}; GPUs with NVLink 5 then need a reset or a reboot"


def check(facts: Facts) -> Iterator[Finding]:
    boards = [(gpu, gpu.fabric) for gpu in facts.gpus if gpu.fabric and gpu.fabric.supported]
    yield from _unregistered(boards)
    yield from _failed(boards)
    yield from _unhealthy(boards)
    yield from _clique(boards)


def _unregistered(boards: list[tuple[Gpu, Fabric]]) -> Iterator[Finding]:
    for state, words, fix in (
        ("not_started", "has not begun to register", _START),
        ("in_progress", "is still registering", f"wait a minute and look again; if it stays so, {_START}"),
    ):
        waiting = [gpu for gpu, fabric in boards if fabric.state == state]
        if waiting:
            yield found(
                ID,
                Severity.ERROR,
                f"{gpus_named(waiting)} {words} with the NVSwitch fabric: CUDA will fail with error 802",
                fix=fix,
            )


def _failed(boards: list[tuple[Gpu, Fabric]]) -> Iterator[Finding]:
    failed = [(gpu, f) for gpu, f in boards if f.state == "completed" and f.status not in {None, "success"}]
    if failed:
        yield found(
            ID,
            Severity.ERROR,
            f"{gpus_named(gpu for gpu, _ in failed)}: registration with the NVSwitch fabric ended with "
            f"{failed[0][1].status!r}, so there is no NVLink to the others",
            detail="; ".join(f"GPU {gpu.index}: state {f.state}, status {f.status}" for gpu, f in failed),
            fix=_RESET,
        )


def _unhealthy(boards: list[tuple[Gpu, Fabric]]) -> Iterator[Finding]:
    sick = [(gpu, f.troubles) for gpu, f in boards if f.troubles]
    if sick:
        words = {word for _, troubles in sick for word in troubles}
        yield found(
            ID,
            Severity.WARNING if words <= MILD_TROUBLES else Severity.ERROR,
            f"{gpus_named(gpu for gpu, _ in sick)}: the NVSwitch fabric reports "
            f"{', '.join(word.replace('_', ' ') for word in sorted(words))}",
            fix=_RESET,
        )


def _clique(boards: list[tuple[Gpu, Fabric]]) -> Iterator[Finding]:
    """Rack-scale fabrics number their cliques; a single board has none and is well without."""
    zero = [
        gpu
        for gpu, fabric in boards
        if fabric.clique_id == 0 and (gpu.compute_capability or (0, 0)) >= (10, 0)
    ]
    rack = [gpu for gpu in zero if "GB200" in gpu.name or "GB300" in gpu.name]
    if rack:
        yield found(
            ID,
            Severity.WARNING,
            f"{gpus_named(rack)} belongs to no NVLink clique, though its kind is made for a rack-scale fabric",
            fix="look at the fabric manager's and IMEX's partition of this node",
        )
    elif zero:
        yield found(
            ID,
            Severity.NOTE,
            "the fabric's clique is 0, which is right for a single board (rack-scale fabrics have another number)",
        )
