"""driver_mismatch: a driver that was updated while the old kernel module stayed loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "driver_mismatch"
NEEDS = ("gpus",)
SOURCE = "an unattended upgrade leaves library and module different; running jobs go on, new ones fail"


def check(facts: Facts) -> Iterator[Finding]:
    module, library = facts.machine.driver_version, facts.machine.driver_library_version
    if module and library and module != library:
        yield found(
            ID,
            Severity.ERROR,
            f"the loaded kernel module is {module}, the driver's library {library}: new GPU processes will fail",
            fix="reboot, or stop all GPU processes and reload the nvidia modules; hold the driver packages",
        )
