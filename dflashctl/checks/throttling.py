"""throttling: GPUs that are slowed down by heat or by the power supply right now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity
from dflashctl.core.gpu_health import SLOWED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "throttling"
NEEDS = ("gpus",)
SOURCE = "nvml.h, nvmlClocksEventReasons; a software power cap under load is normal and no reason to speak"


def check(facts: Facts) -> Iterator[Finding]:
    slowed = [gpu for gpu in facts.gpus if set(gpu.throttle_reasons or ()) & set(SLOWED)]
    if slowed:
        causes = sorted({SLOWED[r] for gpu in slowed for r in gpu.throttle_reasons or () if r in SLOWED})
        yield found(
            ID,
            Severity.WARNING,
            f"{gpus_named(slowed)} is slowed down by {' and '.join(causes)}",
            detail="; ".join(
                f"GPU {gpu.index}: {gpu.temperature_c} C, {gpu.clock_sm_mhz} of {gpu.clock_sm_max_mhz} MHz"
                for gpu in slowed
            ),
            fix="look at cooling and power of this machine before measuring anything",
        )
