"""PCIe and network devices of the host: IOMMU mode, ACS redirection, NVSwitches, InfiniBand."""

from __future__ import annotations

from pathlib import Path

from dflashctl.core.host import InfinibandPort
from dflashctl.edges.text_file import read_text

_PCI = Path("/sys/bus/pci/devices")
_NVIDIA = "0x10de"
_CLASS_DISPLAY = "0x03"
_CLASS_BRIDGE_OTHER = "0x0680"
_EXTENDED_START = 0x100
_ACS_CAPABILITY = 0x000D
_ACS_CONTROL = 6
_REQUEST_REDIRECT, _COMPLETION_REDIRECT = 0x4, 0x8
_TRANSLATING = {"DMA", "DMA-FQ"}


def pci_gpus(root: Path = _PCI) -> int:
    """NVIDIA display and 3D controllers on the PCI bus, whether or not a driver holds them."""
    return sum(
        1 for device in _nvidia(root) if (read_text(device / "class") or "").startswith(_CLASS_DISPLAY)
    )


def nvswitches(root: Path = _PCI) -> int | None:
    """NVSwitch chips that show on the PCI bus (up to the Hopper boards); None when none shows."""
    chips = (
        device
        for device in _nvidia(root)
        if (read_text(device / "class") or "").startswith(_CLASS_BRIDGE_OTHER)
    )
    return sum(1 for _ in chips) or None


def iommu(bus_ids: tuple[str, ...], root: Path = _PCI) -> str | None:
    """The mode for the GPUs' traffic: off, passthrough or translated; None when the kernel does not show it."""
    modes = {read_text(root / _sysfs_name(bus) / "iommu_group" / "type") for bus in bus_ids}
    if modes & _TRANSLATING:
        return "translated"
    if "identity" in modes:
        return "passthrough"
    here = Path("/sys/class/iommu")
    return "off" if bus_ids and here.is_dir() and not any(here.iterdir()) else None


def acs_redirect_bridges(bus_ids: tuple[str, ...], root: Path = _PCI) -> tuple[str, ...] | None:
    """Bridges above the GPUs that redirect peer requests; None when their configuration space is not readable.

    The ACS control register is at offset 6 of the extended capability 0x000d (PCI Express Base Specification).
    """
    found: list[str] = []
    readable = False
    for bridge in sorted({bridge for bus in bus_ids for bridge in _bridges(root / _sysfs_name(bus))}):
        control = _acs_control(bridge / "config")
        readable = readable or control is not None
        if control and control & (_REQUEST_REDIRECT | _COMPLETION_REDIRECT):
            found.append(bridge.name)
    return tuple(found) if readable else None


def infiniband(root: Path = Path("/sys/class/infiniband")) -> tuple[InfinibandPort, ...]:
    """Ports of RDMA devices with their state ("ACTIVE") and rate ("400 Gb/sec")."""
    ports = []
    for folder in sorted(root.glob("*/ports/*")):
        state, rate = read_text(folder / "state"), read_text(folder / "rate")
        ports.append(
            InfinibandPort(
                device=folder.parent.parent.name,
                port=int(folder.name),
                state=state.partition(": ")[2] if state else None,
                rate=rate.partition(" (")[0] if rate else None,
            )
        )
    return tuple(ports)


def _nvidia(root: Path) -> list[Path]:
    devices = root.iterdir() if root.is_dir() else ()
    return [device for device in devices if read_text(device / "vendor") == _NVIDIA]


def _sysfs_name(bus_id: str) -> str:
    """NVML writes the domain with 8 digits and capitals, the kernel with 4 and small letters."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _bridges(device: Path) -> list[Path]:
    return [folder for folder in device.resolve().parents if (folder / "config").exists()]


def _acs_control(config: Path) -> int | None:
    """The control register, 0 without the capability, None when only the first 64 bytes may be read."""
    try:
        space = config.read_bytes()
    except OSError:
        return None
    if len(space) <= _EXTENDED_START:
        return None
    offset, seen = _EXTENDED_START, set[int]()
    while offset >= _EXTENDED_START and offset + 4 <= len(space) and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(space[offset : offset + 4], "little")
        if header & 0xFFFF == _ACS_CAPABILITY:
            return int.from_bytes(space[offset + _ACS_CONTROL : offset + _ACS_CONTROL + 2], "little")
        offset = header >> 20
    return 0
