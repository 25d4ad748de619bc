"""xid: errors the driver wrote to the kernel log since boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity
from dflashctl.core.gpu_health import is_cleared
from dflashctl.core.xid_codes import CONTAINED, OF_FABRIC, OF_PROGRAMS, SEVERE, xid_named

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu

ID = "xid"
NEEDS = ("gpus",)
SOURCE = (
    "NVIDIA Xid catalogue; NVIDIA/open-gpu-kernel-modules#1355: 8x B300, Xid 145 and every collective hangs until a "
    "reboot although all registers look well"
)
_CATALOGUE = "https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html"
_LOG = "sudo dmesg | grep Xid"
_RESET = "reboot (or reset the GPUs with nothing running) before a server runs here; report it if it recurs"
_RESTART = "restart what ran there, and use other GPUs (--gpus) if it recurs"


def check(facts: Facts) -> Iterator[Finding]:
    """A code that no table has is told as well: the catalogue grows with the drivers."""
    yield from _bad(facts, OF_FABRIC, Severity.ERROR, _RESET)
    cleared = all(is_cleared(gpu) for gpu in _hit(facts, SEVERE))
    yield from _bad(facts, SEVERE, Severity.WARNING if cleared else Severity.ERROR, _RESET)
    yield from _bad(facts, CONTAINED, Severity.WARNING, _RESTART)
    programs = _hit(facts, OF_PROGRAMS)
    if programs:
        yield found(
            ID,
            Severity.NOTE,
            f"{_logged(programs, OF_PROGRAMS)}, usually a fault of the program that ran",
        )
    judged = {*OF_FABRIC, *SEVERE, *CONTAINED, *OF_PROGRAMS}
    others = {xid for gpu in facts.gpus for xid in gpu.xids or ()} - judged
    if others:
        summary = _logged(_hit(facts, others), others)
        yield found(ID, Severity.NOTE, summary, detail=_LOG, fix=f"look up what it asks for: {_CATALOGUE}")


def _bad(facts: Facts, codes: Container[int], severity: Severity, fix: str) -> Iterator[Finding]:
    hit = _hit(facts, codes)
    if hit:
        yield found(ID, severity, _logged(hit, codes), detail=_LOG, fix=fix)


def _hit(facts: Facts, codes: Container[int]) -> list[Gpu]:
    return [gpu for gpu in facts.gpus if any(xid in codes for xid in gpu.xids or ())]


def _logged(gpus: list[Gpu], codes: Container[int]) -> str:
    seen = sorted({xid for gpu in gpus for xid in gpu.xids or () if xid in codes})
    return f"{gpus_named(gpus)}: the driver logged {', '.join(xid_named(xid) for xid in seen)} since boot"
