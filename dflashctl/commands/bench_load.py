"""What every measured run asks of the load generator, whatever the load: the load benchmark asks for it too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.bench import LoadSpec
from dflashctl.core.bench_samples import LOOKED_AT

if TYPE_CHECKING:
    from dflashctl.bench import CountSource


def measured_load(
    url: str, counts: CountSource | None, *, concurrency: int | None, rate: float | None = None
) -> LoadSpec:
    """Running counts, exact counts, and of each text as much as a loop would show in."""
    return LoadSpec(
        url=url, counts=counts, concurrency=concurrency, rate=rate, keep_text=True, text_end=LOOKED_AT
    )
