"""Grouping: of the GPUs that may serve, those that are well, free and nearest to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.gpu_health import is_unusable, needs_care
from dflashctl.core.machine import LinkKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.machine import Gpu, Machine

# Driver contexts and display servers; a GPU with more than this is somebody's.
_IN_USE_BYTES = 1 << 30
_COST = {
    LinkKind.NVLINK: 0,
    LinkKind.PIX: 1,
    LinkKind.PXB: 2,
    LinkKind.PHB: 4,
    LinkKind.NODE: 8,
    LinkKind.SYS: 16,
}
_UNKNOWN_LINK = 4
_Score = tuple[int, int, int, int, int, tuple[int, ...]]


def best_group(candidates: Sequence[Gpu], machine: Machine, size: int) -> tuple[Gpu, ...]:
    """`size` of the candidates in index order; fewer candidates than that give all.

    Better is, in this order: fewer unusable GPUs, fewer in use, fewer in need of care, nearer links, fewer NUMA nodes,
    lower numbers.
    From each GPU a group is grown by its nearest neighbour; with all-to-all links that finds an optimum, else a
    good group in at most 16 x 16 steps.
    """
    if len(candidates) <= size:
        return tuple(sorted(candidates, key=lambda gpu: gpu.index))
    groups = [_grow(seed, candidates, machine, size) for seed in candidates]
    best = min(groups, key=lambda group: _score(group, machine))
    return tuple(sorted(best, key=lambda gpu: gpu.index))


def _grow(seed: Gpu, candidates: Sequence[Gpu], machine: Machine, size: int) -> list[Gpu]:
    group = [seed]
    while len(group) < size:
        rest = [gpu for gpu in candidates if gpu not in group]
        group.append(min(rest, key=lambda gpu: _score([*group, gpu], machine)))
    return group


def _score(group: Sequence[Gpu], machine: Machine) -> _Score:
    return (
        sum(is_unusable(gpu) for gpu in group),
        sum(in_use(gpu) for gpu in group),
        sum(needs_care(gpu) for gpu in group),
        sum(_cost(a, b, machine) for place, a in enumerate(group) for b in group[place + 1 :]),
        len({gpu.numa_node for gpu in group}),
        tuple(sorted(gpu.index for gpu in group)),
    )


def in_use(gpu: Gpu) -> bool:
    return (gpu.memory_used_bytes or 0) >= _IN_USE_BYTES


def _cost(a: Gpu, b: Gpu, machine: Machine) -> int:
    link = machine.link(a.index, b.index)
    if link is None:
        return _UNKNOWN_LINK
    kind = link.path if link.kind is LinkKind.UNKNOWN else link.kind
    return _UNKNOWN_LINK if kind is None else _COST.get(kind, _UNKNOWN_LINK)
