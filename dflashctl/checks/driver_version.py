"""driver_version: whether the driver is new enough for the profile and for the engine's CUDA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, version_key
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "driver_version"
NEEDS = ("gpus",)
SOURCE = (
    "NVIDIA CUDA release notes: CUDA 13 needs driver 580, CUDA 12 driver 525; sgl-project/sglang#11395: torch "
    "falls back to the CPU with a driver that is too old"
)
_LEAST_FOR_CUDA = {13: 580, 12: 525}
_FIX = "update the driver (and on NVSwitch boards the fabric manager of the same version), then reboot"


def check(facts: Facts) -> Iterator[Finding]:
    version = facts.machine.driver_version
    have = version_key(version)
    if not have:
        return
    wanted = facts.profile.requirements.driver if facts.profile else None
    if wanted and have < version_key(wanted):
        yield found(
            ID,
            Severity.ERROR,
            f"driver {version} is too old: profile {facts.profile.name!r} needs {wanted}",  # type: ignore[union-attr]
            fix=_FIX,
        )
        return
    build = version_key(facts.software.cuda_build) if facts.software else ()
    least = _LEAST_FOR_CUDA.get(build[0]) if build else None
    if least and have[0] < least and facts.software:
        yield found(
            ID,
            Severity.ERROR,
            f"driver {version} is too old for the installed torch, which is built for CUDA "
            f"{facts.software.cuda_build} and needs driver {least}",
            fix=_FIX,
        )
