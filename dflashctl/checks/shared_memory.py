"""shared_memory: /dev/shm, which NCCL and the engine's processes share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import error_or, found, gb

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "shared_memory"
NEEDS = ("gpus", "host")
SOURCE = "NVIDIA/nccl#290: `Error while creating shared memory segment`; Docker gives a container 64 MB"
_LEAST_BYTES = 1 << 30
_FREE_BYTES = 256 << 20
_FIX = "start the container with --shm-size 32g or --ipc=host; in Kubernetes mount an emptyDir with medium: Memory"


def check(facts: Facts) -> Iterator[Finding]:
    """A container image sets its own; then what stands here says nothing about it."""
    host = facts.host
    if host is None or host.shm_total_bytes is None or (facts.plan and facts.plan.runtime == "docker"):
        return
    several = facts.ranks > 1 and facts.needs_gpus
    if host.shm_total_bytes < _LEAST_BYTES:
        yield found(
            ID,
            error_or(if_planned=several),
            f"/dev/shm has {gb(host.shm_total_bytes)}: NCCL will fail to create its segments",  # noqa: S108
            fix=_FIX if host.container != "none" else "sudo mount -o remount,size=32g /dev/shm",
        )
    elif host.shm_free_bytes is not None and host.shm_free_bytes < _FREE_BYTES:
        yield found(
            ID,
            error_or(if_planned=several),
            f"/dev/shm is full: {gb(host.shm_free_bytes)} of {gb(host.shm_total_bytes)} are free",  # noqa: S108
            fix="remove segments of dead processes: ls -la /dev/shm",
        )
