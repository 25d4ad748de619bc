"""How many cores this process may use."""

from __future__ import annotations

import math
import os

from dflashctl.edges.cgroup import cpu_quota


def usable_cores() -> int:
    """Those it may run on, or fewer where a container's quota gives it less time than they have."""
    cores = len(os.sched_getaffinity(0))
    quota = cpu_quota()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))
