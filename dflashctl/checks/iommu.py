"""iommu: redirected peer traffic between PCIe GPUs, which makes collectives hang without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity
from dflashctl.core.machine import LinkKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "iommu"
NEEDS = ("gpus", "host", "profile")
SOURCE = "NVIDIA/nccl#2079 and vllm-project/vllm#51513: ACS redirection through a translating IOMMU drops peer writes"
_NOT_PCIE = {LinkKind.NVLINK, LinkKind.UNKNOWN}


def check(facts: Facts) -> Iterator[Finding]:
    host = facts.host
    peers = [link for link in facts.links if link.kind not in _NOT_PCIE and link.p2p is not False]
    if facts.ranks < 2 or not peers or host is None:  # noqa: PLR2004 - one GPU has no peers
        return
    bridges = host.acs_redirect_bridges or ()
    if bridges or host.iommu == "translated":
        evidence = [f"IOMMU {host.iommu}"] if host.iommu else []
        evidence += [f"ACS redirect on {', '.join(bridges)}"] if bridges else []
        yield found(
            ID,
            Severity.WARNING,
            "peer traffic between these GPUs goes through the IOMMU, which is known to make collectives hang",
            detail="; ".join(evidence),
            fix="turn ACS off in the firmware or boot with iommu=pt; until then set NCCL_P2P_DISABLE=1",
        )
