"""process_limit: the container's limit on processes and threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "process_limit"
NEEDS = ("host", "sglang_plan")
SOURCE = "sgl-project/sglang#5762; every rank runs hundreds of threads, and kernel compilation starts more"
_PER_RANK = 512


def check(facts: Facts) -> Iterator[Finding]:
    limit = facts.host.cgroup_pids_max if facts.host else None
    need = (facts.ranks + 1) * _PER_RANK
    if limit is not None and limit < need:
        yield found(
            ID,
            Severity.WARNING,
            f"this container may have {limit} processes and threads; {facts.ranks} ranks want about {need}",
            fix="start the container with --pids-limit -1",
        )
