"""running: whether the plan's own server runs already, so that it is not mistaken for somebody else's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "running"
NEEDS = ("plan",)
SOURCE = "a server's own port and memory look like an occupied machine to every tool that does not know whose they are"


def check(facts: Facts) -> Iterator[Finding]:
    if facts.running is not None:
        yield found(
            ID,
            Severity.NOTE,
            f"instance {facts.running.name} is {facts.running.phase} at {facts.running.url}: "
            "what it holds is counted as free",
        )
