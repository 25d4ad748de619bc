"""locked_memory: the limit on locked memory, which RDMA registration runs into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gb
from dflashctl.core.findings import Severity
from dflashctl.core.host import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "locked_memory"
NEEDS = ("gpus", "host")
SOURCE = "NVIDIA/nccl-tests#206: `ibv_reg_mr_iova2 failed with error Cannot allocate memory`"
_ENOUGH_BYTES = 1 << 30


def check(facts: Facts) -> Iterator[Finding]:
    """Only a host with active RDMA ports registers memory; a server on one machine without them never does."""
    host = facts.host
    if host is None or host.memlock is None or host.memlock.soft == UNLIMITED:
        return
    active = [port for port in host.infiniband if port.state == "ACTIVE"]
    if active and facts.ranks > 1 and host.memlock.soft < _ENOUGH_BYTES:
        yield found(
            ID,
            Severity.WARNING,
            f"only {gb(host.memlock.soft)} may be locked, and this host has {len(active)} active RDMA ports: "
            "NCCL may fail to register memory",
            fix="ulimit -l unlimited; LimitMEMLOCK=infinity in the unit; --ulimit memlock=-1 for a container",
        )
