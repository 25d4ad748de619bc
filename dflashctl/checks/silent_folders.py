"""silent_folders: the file systems of weights and compiled kernels answer at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.engine_folders import STATE, VARIABLES, WEIGHTS
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "silent_folders"
NEEDS = ("host",)
SOURCE = "nfs(5), `hard`: requests are retried indefinitely while the server is away, and whoever waits cannot be interrupted"


def check(facts: Facts) -> Iterator[Finding]:
    in_container = facts.plan is not None and facts.plan.runtime == "docker"  # which has caches of its own
    for folder in facts.host.folders if facts.host is not None else ():
        if folder.silent and (folder.kind in (WEIGHTS, STATE) or not in_container):
            on = f" on {folder.file_system}" if folder.file_system else ""
            yield found(
                ID,
                Severity.ERROR,
                f"the {folder.kind} folder {folder.path}{on} does not answer: whoever looks into it waits for ever",
                fix=f"look at its mount and at the server behind it (dmesg), or set {VARIABLES[folder.kind]} to another folder",
            )
