"""disk_space: room for the weights that are not here yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gb
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "disk_space"
NEEDS = ("host", "plan")
SOURCE = "huggingface/diffusers#4957: the cache sits on a small home file system although a large volume is mounted"
_MARGIN = 1.05


def check(facts: Facts) -> Iterator[Finding]:
    folder = facts.host.folder("weights") if facts.host else None
    missing = sum((w.wanted_bytes or 0) - (w.present_bytes or 0) for w in facts.weights if w.wanted_bytes)
    if folder is None or folder.free_bytes is None or missing <= 0:
        return
    if folder.free_bytes < missing * _MARGIN:
        yield found(
            ID,
            Severity.ERROR,
            f"{gb(missing)} of weights are still to be fetched, and {folder.path} has {gb(folder.free_bytes)} free",
            detail="; ".join(
                f"{w.label}: {gb(w.present_bytes or 0)} of {gb(w.wanted_bytes or 0)}" for w in facts.weights
            ),
            fix="set HF_HUB_CACHE (or HF_HOME) to a folder on a larger disk, for fetch and for up",
        )
