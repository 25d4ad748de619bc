"""Down result: what `down` found and did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DownResult:
    """`name` None when there was nothing to mean; `swept` counts processes that an unclean end had left."""

    name: str | None
    already_stopped: bool
    took_s: float
    swept: int = 0
    forced: bool = False
    port: int | None = None
    gpus: tuple[str, ...] = ()
