"""kernel_settings: NUMA balancing and the clock, which disturb a long-running server or its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "kernel_settings"
NEEDS = ("gpus", "host")
SOURCE = "NVIDIA's and SGLang's tuning advice: numa_balancing 0; tokens with limited life need a right clock"


def check(facts: Facts) -> Iterator[Finding]:
    host = facts.host
    if host is None:
        return
    if host.numa_balancing and (host.numa_nodes or 1) > 1:
        yield found(
            ID,
            Severity.NOTE,
            "automatic NUMA balancing is on: it moves pages under the server and costs some latency",
            fix="sudo sysctl kernel.numa_balancing=0",
        )
    if host.clock_synchronised is False and host.container == "none":
        yield found(
            ID,
            Severity.NOTE,
            "no time service holds the clock: certificates and times in records may be wrong",
            fix="sudo timedatectl set-ntp true",
        )
