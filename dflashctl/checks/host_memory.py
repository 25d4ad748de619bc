"""host_memory: room in the host's memory, or the container's limit, for loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gb
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.host import Host

ID = "host_memory"
NEEDS = ("host", "sglang_plan")
SOURCE = (
    "sgl-project/sglang#37931: the kernel's OOM killer takes the scheduler while weights load; #5762: `Cannot "
    "allocate memory` in scheduler start"
)
# Measured with SGLang 0.5.17 and the tiny pair: 1.9 to 2.3 GB a rank, 2.1 GB for the front and the detokenizer.
_PER_RANK_BYTES = 2_500_000_000
_FRONT_BYTES = 2_200_000_000


def check(facts: Facts) -> Iterator[Finding]:
    room = _room(facts.host) if facts.host else None
    need = _FRONT_BYTES + facts.ranks * _PER_RANK_BYTES
    if room is not None and room < need:
        yield found(
            ID,
            Severity.WARNING,
            f"{gb(room)} of host memory are left; {facts.ranks} rank{'s' if facts.ranks > 1 else ''} and the "
            f"server's front take about {gb(need)} while they load",
            fix="free some, or raise the container's memory limit",
        )


def _room(host: Host) -> int | None:
    limits = [host.memory_available_bytes]
    if host.cgroup_memory_max_bytes is not None:
        # Page cache counts as used there and is given up under pressure, so the limit itself is compared.
        limits.append(host.cgroup_memory_max_bytes)
    known = [limit for limit in limits if limit is not None]
    return min(known) if known else None
