"""gpu_memory: memory that others hold on the GPUs, and whether the plan still has room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gb, gpus_named
from dflashctl.core.findings import Severity
from dflashctl.core.fit import FitVerdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.machine import Gpu

ID = "gpu_memory"
NEEDS = ("gpus",)
SOURCE = (
    "sgl-project/sglang#1533, #4233: `The memory capacity is unbalanced. Some GPUs may be occupied by other "
    "processes.` after minutes of loading; SGLang wants the fullest GPU within 10 % of the emptiest"
)
# Contexts of idle tools and display servers, and the reserve where the driver does not tell it apart.
_NOTICE_BYTES = 1 << 30
_NOTICE_SHARE = 0.02
_BALANCE = 0.9


def check(facts: Facts) -> Iterator[Finding]:
    held = [gpu for gpu in facts.gpus if _somebodys(gpu)]
    if not held:
        return
    most = max(gpu.memory_used_bytes or 0 for gpu in held)
    severity, consequence = _consequence(facts)
    yield found(
        ID,
        severity,
        f"processes hold up to {gb(most)} on {gpus_named(held)}{consequence}",
        detail="; ".join(_holders(gpu) for gpu in held),
        fix="stop those processes, or choose other GPUs: --gpus LIST"
        if severity is not Severity.NOTE
        else None,
    )


def _somebodys(gpu: Gpu) -> bool:
    used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
    if used is None or total is None:
        return False
    unsure = _NOTICE_BYTES if gpu.memory_reserved_bytes is None else 0
    return used - unsure >= max(_NOTICE_BYTES, total * _NOTICE_SHARE)


def _consequence(facts: Facts) -> tuple[Severity, str]:
    if facts.profile is None:
        return Severity.NOTE, ""
    free = [gpu.memory_free_bytes for gpu in facts.gpus if gpu.memory_free_bytes is not None]
    if facts.ranks > 1 and free and min(free) < _BALANCE * max(free):
        return (
            Severity.ERROR,
            ": SGLang refuses to start when the GPUs' free memory differs by more than 10 %",
        )
    now, alone = facts.fit_now, facts.fit
    if now and alone and now.verdict is not alone.verdict and now.verdict is not FitVerdict.RUNS:
        return Severity.ERROR, f": {now.summary}"
    return Severity.WARNING, ": the server gets a smaller KV cache, and the two slow each other down"


def _holders(gpu: Gpu) -> str:
    if not gpu.processes:
        return f"GPU {gpu.index}: {gb(gpu.memory_used_bytes or 0)}, by no process that shows here"
    names = ", ".join(
        f"pid {p.pid}"
        + (f" {p.name}" if p.name else "")
        + (f" {gb(p.memory_bytes)}" if p.memory_bytes else "")
        for p in gpu.processes
    )
    return f"GPU {gpu.index}: {names}"
