"""The stall rule: a transfer is stalled when the bytes on disk do not grow, whatever carries them."""

from __future__ import annotations

from dataclasses import dataclass, replace

STALL_AFTER_S = 120.0
LEAST_RATE_BYTES_PER_S = 1024


@dataclass(frozen=True, kw_only=True)
class Growth:
    """`mark_bytes` were there at `since_s`; a transfer must add the least amount within each window."""

    since_s: float
    mark_bytes: int


def grown(growth: Growth, now_s: float, written_bytes: int, *, window_s: float = STALL_AFTER_S) -> Growth:
    """The watch after a look at the disk.

    A drop counts as a new start: a restarted file begins at zero. A trickle below the least rate does not count
    as growth, since a byte every few seconds never ends.
    """
    least = int(LEAST_RATE_BYTES_PER_S * window_s)
    if written_bytes < growth.mark_bytes or written_bytes - growth.mark_bytes >= least:
        return Growth(since_s=now_s, mark_bytes=written_bytes)
    return growth


def excused(growth: Growth, now_s: float) -> Growth:
    """The watch while the server itself asked to wait."""
    return replace(growth, since_s=now_s)


def stalled_s(growth: Growth, now_s: float) -> float:
    """How long nothing worth the name was written, in seconds."""
    return now_s - growth.since_s
