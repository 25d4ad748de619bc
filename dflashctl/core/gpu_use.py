"""GpuUse: which of the GPUs that it sees an engine's arguments make a server use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class GpuUse:
    """`count` GPUs of this machine, one a rank; `highest` is the largest number among them.

    The numbers count what the server sees, from 0: with GPUs 4 to 7 visible, number 0 is GPU 4.
    """

    count: int
    highest: int
