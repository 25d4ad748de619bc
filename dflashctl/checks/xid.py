"""xid: errors the driver wrote to the kernel log since boot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity
from dflashctl.core.gpu_health import FABRIC_XIDS, SEVERE_XIDS, is_cleared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu

ID = "xid"
NEEDS = ("gpus",)
SOURCE = (
    "NVIDIA Xid catalogue; NVIDIA/open-gpu-kernel-modules#1355: 8x B300, Xid 145 and every collective hangs until a "
    "reboot although all registers look well"
)
_OF_PROGRAMS = {
    13: "exception in a kernel",
    31: "memory page fault",
    43: "process stopped",
    45: "process ended early",
}


def check(facts: Facts) -> Iterator[Finding]:
    for codes, fixed in ((FABRIC_XIDS, Severity.ERROR), (SEVERE_XIDS, None)):
        hit = [gpu for gpu in facts.gpus if set(gpu.xids or ()) & set(codes)]
        cleared = all(is_cleared(gpu) for gpu in hit)
        severity = fixed or (Severity.WARNING if cleared else Severity.ERROR)
        if hit:
            yield found(
                ID,
                severity,
                f"{gpus_named(hit)}: the driver logged {_list(hit, codes)} since boot",
                detail="sudo dmesg | grep Xid",
                fix="reboot (or reset the GPUs with nothing running) before a server runs here; report it if it recurs",
            )
    programs = [gpu for gpu in facts.gpus if set(gpu.xids or ()) & set(_OF_PROGRAMS)]
    if programs:
        yield found(
            ID,
            Severity.NOTE,
            f"{gpus_named(programs)}: the driver logged {_list(programs, _OF_PROGRAMS)} since boot, "
            "usually a fault of the program that ran",
        )


def _list(gpus: list[Gpu], codes: dict[int, str]) -> str:
    seen = sorted({xid for gpu in gpus for xid in gpu.xids or () if xid in codes})
    return ", ".join(f"Xid {xid} ({codes[xid]})" for xid in seen)
