"""deep_disk: how fast the weights can be read, against the engine's patience."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gb
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "deep_disk"
NEEDS = ("tried_disk", "plan")
SOURCE = "sgl-project/sglang#39629: ranks wait 480 s for the slowest loader, hard-coded, then the start fails"
_LIMIT_S = 300.0


def check(facts: Facts) -> Iterator[Finding]:
    if facts.deep is not None and facts.deep.disk_error is not None:
        yield found(
            ID,
            Severity.ERROR,
            f"the weights cannot be read: {facts.deep.disk_error}",
            fix="look at the disk (df, dmesg; a network disk: its server), then: dflashctl fetch PROFILE --verify",
        )
    rate = facts.deep.disk_read_gb_per_s if facts.deep else None
    size = sum(w.wanted_bytes or w.present_bytes or 0 for w in facts.weights)
    if not rate or not size:
        return
    seconds = size / 1e9 / rate
    if seconds > _LIMIT_S and facts.ranks > 1:
        yield found(
            ID,
            Severity.WARNING,
            f"{gb(size)} of weights at {rate:.1f} GB/s take {seconds / 60:.0f} minutes to read; "
            "the engine gives up when one rank is 8 minutes behind",
            fix="copy them to a local NVMe disk, or read them once before the start: cat FOLDER/*.safetensors > /dev/null",
        )
