"""wsl: a Linux guest of Windows, where NVML hides half and memory is shared with the desktop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "wsl"
NEEDS = ("gpus", "host")
SOURCE = (
    "NVIDIA's CUDA on WSL guide, known limitations: NVML does not report processes, ECC, NVLink or clocks"
)


def check(facts: Facts) -> Iterator[Finding]:
    if facts.host and facts.host.wsl:
        yield found(
            ID,
            Severity.NOTE,
            "this is WSL: the driver hides health, links and other processes, so this report knows less than usual",
        )
