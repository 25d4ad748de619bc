"""Workloads: what servers are measured with, one data set a module; WORKLOADS finds them by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.errors import UsageProblem
from dflashctl.core.spelling import nearest
from dflashctl.workloads import (
    gsm8k,
    humaneval,
    humaneval_long,
    longbench_v2,
    math500,
    mbpp,
    mt_bench,
    random_words,
    shared_prefix,
    tiny_math,
)

if TYPE_CHECKING:
    from dflashctl.core.workload import Workload

_ALL: tuple[Workload, ...] = (
    tiny_math,
    gsm8k,
    math500,
    humaneval,
    humaneval_long,
    mbpp,
    mt_bench,
    longbench_v2,
    random_words,
    shared_prefix,
)
WORKLOADS: dict[str, Workload] = {workload.NAME: workload for workload in _ALL}


def workload(name: str) -> Workload:
    """The workload of that name; UsageProblem with the nearest names."""
    if name not in WORKLOADS:
        raise UsageProblem(f"there is no workload {name!r}", hint=nearest(name, list(WORKLOADS)))
    return WORKLOADS[name]
