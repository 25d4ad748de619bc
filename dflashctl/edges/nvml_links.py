"""How GPUs are joined, as NVML tells: NVLink lanes, the NVSwitch fabric, PCIe distance, peer access."""

from __future__ import annotations

from ctypes import byref
from itertools import combinations
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dflashctl.core.machine import Fabric, Link, LinkKind
from dflashctl.edges.nvml import Asker

if TYPE_CHECKING:
    from collections.abc import Mapping

_FABRIC_STATES = ("not_supported", "not_started", "in_progress", "completed")
_MAX_LINKS = 18
_P2P_READ, _P2P_WRITE, _P2P_NVLINK = 0, 1, 2
_P2P_OK = 0
# nvml.h: NVML_NVLINK_VERSION_*.
_VERSIONS = {1: "1.0", 2: "2.0", 3: "2.2", 4: "3.0", 5: "3.1", 6: "4.0", 7: "5.0", 8: "6.0"}
# nvml.h: nvmlGpuTopologyLevel_t; "internal" is two GPUs on one board.
_LEVELS = {
    0: LinkKind.PIX,
    10: LinkKind.PIX,
    20: LinkKind.PXB,
    30: LinkKind.PHB,
    40: LinkKind.NODE,
    50: LinkKind.SYS,
}
# nvml.h: NVML_GPU_FABRIC_HEALTH_MASK_*: each is two bits, 1 is true and 2 is false; the configuration has four.
_HEALTH_BITS = (
    (0, "degraded_bandwidth"),
    (2, "route_recovery_in_progress"),
    (4, "route_unhealthy"),
    (6, "access_timeout_recovery"),
)
_CONFIGURATION_SHIFT = 8
_CONFIGURATIONS = {
    2: "incorrect_system_guid",
    3: "incorrect_chassis_serial",
    4: "no_partition",
    5: "insufficient_nvlinks",
    6: "incompatible_gpu_firmware",
    7: "invalid_location",
    8: "gpu_state_invalid",
}


def lanes(asker: Asker, handle: Any) -> tuple[int | None, int | None, tuple[int, ...], str | None]:
    """Active lanes, lanes the GPU has, the numbers of inactive ones, and the NVLink version.

    A GPU without NVLink refuses the question for lane 0; all lanes are then None. Where the lanes exist but none
    is active (a PCIe board without bridges), active is 0.
    """
    count = min(getattr(asker.lib, "NVML_NVLINK_MAX_LINKS", _MAX_LINKS), 2 * _MAX_LINKS)
    states: dict[int, int] = {}
    for lane in range(count):
        state = asker.quietly("nvmlDeviceGetNvLinkState", handle, lane)
        if state is None:
            break
        states[lane] = state
    if not states:
        asker.note("nvlink")
        return None, None, (), None
    down = tuple(lane for lane, state in states.items() if not state)
    first = next((lane for lane, state in states.items() if state), None)
    version = asker.quietly("nvmlDeviceGetNvLinkVersion", handle, first) if first is not None else None
    return len(states) - len(down), len(states), down, _VERSIONS.get(version or 0)


def fabric(asker: Asker, handle: Any) -> Fabric | None:
    """The fabric registration by the newest call that the driver has; None when it has none."""
    for structure, function in (
        ("c_nvmlGpuFabricInfo_v3_t", "nvmlDeviceGetGpuFabricInfoV"),
        ("c_nvmlGpuFabricInfo_v2_t", "nvmlDeviceGetGpuFabricInfoV"),
        ("c_nvmlGpuFabricInfo_t", "nvmlDeviceGetGpuFabricInfo"),
    ):
        make = getattr(asker.lib, structure, None)
        if make is None:
            continue
        info = make()
        if asker.quietly(function, handle, byref(info)) is not None:
            return _fabric(asker.lib, info)
    asker.note("fabric")
    return None


def _fabric(lib: Any, info: Any) -> Fabric:
    state = _FABRIC_STATES[info.state] if 0 <= info.state < len(_FABRIC_STATES) else None
    finished = state == "completed"
    mask = getattr(info, "healthMask", None)
    return Fabric(
        state=state,
        status=_status(lib, info.status) if finished else None,
        clique_id=int(info.cliqueId) if finished else None,
        cluster_uuid=str(UUID(bytes=bytes(info.clusterUuid))) if finished else None,
        troubles=None if mask is None else _troubles(mask),
    )


def _status(lib: Any, code: int) -> str:
    return "success" if code == lib.NVML_SUCCESS else str(lib.NVMLError(code))


def _troubles(mask: int) -> tuple[str, ...]:
    words = [word for shift, word in _HEALTH_BITS if (mask >> shift) & 0b11 == 1]
    configuration = _CONFIGURATIONS.get((mask >> _CONFIGURATION_SHIFT) & 0b1111)
    return (*words, configuration) if configuration else tuple(words)


def read_links(lib: Any, handles: Mapping[int, Any]) -> tuple[tuple[Link, ...], tuple[str, ...]]:
    """Every pair of GPUs, by index, and which facts about them are unknown: `links`, `p2p`."""
    asker = Asker(lib)
    pairs = combinations(sorted(handles), 2)
    links = tuple(_link(asker, (a, handles[a]), (b, handles[b])) for a, b in pairs)
    return links, tuple(asker.unknown)


def _link(asker: Asker, one: tuple[int, Any], other: tuple[int, Any]) -> Link:
    path = _LEVELS.get(asker.quietly("nvmlDeviceGetTopologyCommonAncestor", one[1], other[1]))
    nvlink = _p2p(asker, "links", one[1], other[1], _P2P_NVLINK)
    if path is None:
        asker.note("links")
    access = [_p2p(asker, "p2p", one[1], other[1], which) for which in (_P2P_READ, _P2P_WRITE)]
    return Link(
        a=one[0],
        b=other[0],
        kind=_kind(path, nvlink=nvlink),
        p2p=None if None in access else all(access),
        path=path,
    )


def _kind(path: LinkKind | None, *, nvlink: bool | None) -> LinkKind:
    """NVLink where there is one; the PCIe path only where NVML says that there is none."""
    if nvlink:
        return LinkKind.NVLINK
    return LinkKind.UNKNOWN if nvlink is None or path is None else path


def _p2p(asker: Asker, fact: str, one: Any, other: Any, which: int) -> bool | None:
    status = asker.ask(fact, "nvmlDeviceGetP2PStatus", one, other, which)
    return None if status is None else status == _P2P_OK
