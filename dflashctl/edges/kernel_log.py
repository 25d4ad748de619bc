"""Xid errors of the kernel log: what the driver said about each GPU since boot."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_RECORDS = 50_000
_RECORD_BYTES = 8192
# A record reads: NVRM: Xid (PCI:0000:1a:00): 79, pid=1234, name=python, GPU has fallen off the bus.
_XID = re.compile(r"NVRM: Xid \(PCI:([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})[^)]*\): (\d+)")


def read_xids() -> dict[str, tuple[int, ...]] | None:
    """Xid codes in order of appearance by "domain:bus:device"; None when the log may not be read."""
    try:
        handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return xids(_records(handle))
    except OSError:
        return None
    finally:
        os.close(handle)


def xids(records: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The Xid codes in kernel log records, each code once for each GPU."""
    found: dict[str, dict[int, None]] = {}
    for record in records:
        match = _XID.search(record)
        if match:
            domain, bus, device, code = match.groups()
            found.setdefault(f"{domain[-4:]}:{bus}:{device}".lower(), {})[int(code)] = None
    return {place: tuple(codes) for place, codes in found.items()}


def key_of(bus_id: str) -> str:
    """NVML's bus id ("00000000:1A:00.0") as this module's key."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain[-4:]}:{rest.partition('.')[0]}"


def _records(handle: int) -> Iterator[str]:
    for _ in range(_MAX_RECORDS):
        record = _record(handle)
        if record is None:
            return
        yield record


def _record(handle: int) -> str | None:
    """One record a read; None at the end, empty where the oldest ones were overwritten meanwhile (EPIPE)."""
    try:
        return os.read(handle, _RECORD_BYTES).decode(errors="replace")
    except BlockingIOError:
        return None
    except BrokenPipeError:
        return ""
