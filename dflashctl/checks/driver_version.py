"""driver_version: whether the driver is new enough for the profile and for the CUDA of the engine, or of the image that brings it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, version_key
from dflashctl.core.findings import Severity
from dflashctl.core.image_cuda import image_cuda

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "driver_version"
NEEDS = ("gpus",)
SOURCE = (
    "NVIDIA CUDA release notes: CUDA 13 needs driver 580, CUDA 12 driver 525; sgl-project/sglang#11395: torch "
    "falls back to the CPU with a driver that is too old; NVIDIA/nvidia-container-toolkit#152: a container whose image "
    "wants a newer CUDA does not start"
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
    for what, cuda, fix in _builds(facts):
        least = _LEAST_FOR_CUDA.get((version_key(cuda) or (0,))[0])
        if least and have[0] < least:
            yield found(
                ID,
                Severity.ERROR,
                f"driver {version} is too old for {what}, which is built for CUDA {cuda} and needs driver {least}",
                fix=fix,
            )


def _builds(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """What runs on the driver, its CUDA, and what to do when the driver is too old for it."""
    plan = facts.plan
    if plan is not None and plan.runtime == "docker":
        cuda = image_cuda(plan.image or "")
        if cuda is not None:
            yield f"image {plan.image}", cuda, f"{_FIX}; or --image with a tag for CUDA 12 (-cu129)"
    elif facts.software is not None and facts.software.cuda_build:
        yield "the installed torch", facts.software.cuda_build, _FIX
