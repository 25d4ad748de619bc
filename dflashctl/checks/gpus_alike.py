"""gpus_alike: different GPUs that are to work together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "gpus_alike"
NEEDS = ("gpus", "profile")
SOURCE = "sgl-project/sglang#1533: mixed models trip the memory balance rule; the slowest GPU sets the pace"


def check(facts: Facts) -> Iterator[Finding]:
    names = sorted({gpu.name for gpu in facts.gpus})
    sizes = {gpu.memory_total_bytes // (1 << 30) for gpu in facts.gpus if gpu.memory_total_bytes is not None}
    if facts.ranks > 1 and (len(names) > 1 or len(sizes) > 1):
        yield found(
            ID,
            Severity.WARNING,
            f"the plan's GPUs differ ({', '.join(names)}): the smallest sets the memory, the slowest the speed",
            fix="choose GPUs of one kind: --gpus LIST",
        )
