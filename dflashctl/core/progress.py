"""Progress: what long commands say while they work; the screen, JSON lines or nobody listens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Progress:
    """`step` is a stable word ("fetch", "load_target"), `text` is for people; `done`/`total` share `unit`.

    `rate_per_s` is in units a second, `left_s` the time left at the present rate, or until what is planned is over.
    """

    step: str
    text: str
    done: float | None = None
    total: float | None = None
    unit: str | None = None
    final: bool = False
    rate_per_s: float | None = None
    left_s: float | None = None
