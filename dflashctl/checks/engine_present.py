"""engine_present: whether the interpreter that would start the engine has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "engine_present"
NEEDS = ("software", "sglang_plan")
SOURCE = "a start without the engine ends at once; one with another interpreter's engine runs another release"


def check(facts: Facts) -> Iterator[Finding]:
    """Nothing to say when a release was named that need not be here (--engine-version)."""
    software = facts.software
    if software is None or facts.release_asked:
        return
    if software.problem is not None:
        yield found(ID, Severity.ERROR, software.problem, fix="name the engine's interpreter: --python PATH")
    elif software.sglang is None:
        yield found(
            ID,
            Severity.ERROR,
            f"SGLang is not installed for {software.python}",
            fix=f"{facts.install_hint or 'install it'}   (or name its interpreter: --python PATH)",
        )
