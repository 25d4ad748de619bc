"""The machine that a profile requires, made up for planning where there are no GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from dflashctl.core.machine import Fabric, Gpu, Link, LinkKind, Machine

if TYPE_CHECKING:
    from dflashctl.core.profile import Requirements

_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class GpuKind:
    """A GPU model: `word` is found in the product name, memory is the total that NVML reports.

    `compute_capability` is None for a GPU of which only the memory is required. `nvlinks` is the lane count of the board with NVSwitch, None for boards without.
    """

    word: str
    name: str
    memory_total_bytes: int
    compute_capability: tuple[int, int] | None
    power_limit_w: float | None
    nvlinks: int | None = None
    nvlink_version: str | None = None


# Totals and power limits as nvidia-smi prints them (275040 MiB and 1100 W on a B300, for example); a total is a
# little below the capacity in the product's name since part of the memory holds ECC and firmware.
KINDS = (
    GpuKind(
        word="B300",
        name="NVIDIA B300 SXM6 AC",
        memory_total_bytes=275040 * _MIB,
        compute_capability=(10, 3),
        power_limit_w=1100.0,
        nvlinks=18,
        nvlink_version="5.0",
    ),
    GpuKind(
        word="B200",
        name="NVIDIA B200",
        memory_total_bytes=183359 * _MIB,
        compute_capability=(10, 0),
        power_limit_w=1000.0,
        nvlinks=18,
        nvlink_version="5.0",
    ),
    GpuKind(
        word="H200",
        name="NVIDIA H200",
        memory_total_bytes=143771 * _MIB,
        compute_capability=(9, 0),
        power_limit_w=700.0,
        nvlinks=18,
        nvlink_version="4.0",
    ),
    GpuKind(
        word="H100",
        name="NVIDIA H100 80GB HBM3",
        memory_total_bytes=81559 * _MIB,
        compute_capability=(9, 0),
        power_limit_w=700.0,
        nvlinks=18,
        nvlink_version="4.0",
    ),
    GpuKind(
        word="A100",
        name="NVIDIA A100-SXM4-80GB",
        memory_total_bytes=81920 * _MIB,
        compute_capability=(8, 0),
        power_limit_w=400.0,
        nvlinks=12,
        nvlink_version="3.1",
    ),
    GpuKind(
        word="L4",
        name="NVIDIA L4",
        memory_total_bytes=23034 * _MIB,
        compute_capability=(8, 9),
        power_limit_w=72.0,
    ),
)
_DEFAULT = KINDS[3]


def kind_of(name: str) -> GpuKind | None:
    """The known kind of a product name: its word stands between spaces or dashes."""
    words = name.replace("-", " ").upper().split()
    return next((kind for kind in KINDS if kind.word in words), None)


def assumed_machine(requirements: Requirements) -> Machine:
    """A healthy machine that meets `requirements` exactly; no GPUs when none are required."""
    kind = _pick(requirements)
    gpus = tuple(_gpu(kind, index) for index in range(requirements.gpus))
    nearness = LinkKind.NVLINK if kind.nvlinks else LinkKind.PHB
    links = tuple(
        Link(a=a.index, b=b.index, kind=nearness, p2p=True if kind.nvlinks else None)
        for a, b in combinations(gpus, 2)
    )
    return Machine(
        gpus=gpus,
        links=links,
        driver_version=requirements.driver if gpus else None,
        assumed=True,
    )


def _pick(needs: Requirements) -> GpuKind:
    """The first required kind that is known, else the smallest with a required compute capability.

    Where neither is required the GPU stays of an unknown kind: what depends on the kind is then not refused.
    """
    for word in needs.gpu_kinds:
        known = next((kind for kind in KINDS if kind.word.lower() == word.lower()), None)
        if known:
            return known
    if not needs.compute_capability:
        return _unknown(needs)
    fitting = [kind for kind in KINDS if _meets(kind, needs)]
    return min(fitting, key=lambda kind: kind.memory_total_bytes, default=_unknown(needs))


def _unknown(needs: Requirements) -> GpuKind:
    """No GPU model: its name says what is required, words of `gpu_kinds` included, and its memory is just that."""
    memory = needs.gpu_memory_bytes
    size = f" of {memory / 1e9:.0f} GB or more" if memory else ""
    named = " or ".join(needs.gpu_kinds) or "GPU"
    return GpuKind(
        word="",
        name=f"{named}{size}" if needs.gpu_kinds or size else "GPU of any kind",
        memory_total_bytes=memory or _DEFAULT.memory_total_bytes,
        compute_capability=_only(needs),
        power_limit_w=None,
        nvlinks=_DEFAULT.nvlinks if needs.nvlink else None,
    )


def _only(needs: Requirements) -> tuple[int, int] | None:
    """The compute capability when exactly one will do."""
    if len(needs.compute_capability) != 1:
        return None
    major, _, minor = needs.compute_capability[0].partition(".")
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _meets(kind: GpuKind, needs: Requirements) -> bool:
    capability = ".".join(map(str, kind.compute_capability or ()))
    return (
        kind.memory_total_bytes >= (needs.gpu_memory_bytes or 0)
        and capability in needs.compute_capability
        and (kind.nvlinks is not None or not needs.nvlink)
    )


def _gpu(kind: GpuKind, index: int) -> Gpu:
    fabric = Fabric(state="completed", status="success", clique_id=0, troubles=()) if kind.nvlinks else None
    return Gpu(
        index=index,
        uuid=f"assumed-{index}",
        name=kind.name,
        memory_total_bytes=kind.memory_total_bytes,
        memory_free_bytes=kind.memory_total_bytes,
        compute_capability=kind.compute_capability,
        mig_enabled=False,
        nvlinks_active=kind.nvlinks,
        nvlinks_total=kind.nvlinks,
        nvlink_version=kind.nvlink_version,
        fabric=fabric,
    )
