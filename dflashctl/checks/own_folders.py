"""own_folders: the folders of dflashctl's own that a start writes its records and its sockets to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.engine_folders import START_BYTES, STATE, TEMPORARY, VARIABLES
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.host import Folder

ID = "own_folders"
NEEDS = ("host",)
SOURCE = "statvfs(3), access(2): without room or the right to write there, `up` ends before its server starts, or nobody can follow it"


def check(facts: Facts) -> Iterator[Finding]:
    for folder in facts.host.folders if facts.host is not None else ():
        if folder.kind == STATE:
            yield from _state(folder)
        elif folder.kind == TEMPORARY and folder.writable is False:
            yield from _temporary(folder, facts)


def _state(folder: Folder) -> Iterator[Finding]:
    if folder.writable is False:
        yield found(
            ID,
            Severity.ERROR,
            f"the state folder {folder.path} cannot be used: it must be, or become, a folder of this user that others cannot write to",
            fix=f"choose another folder with {VARIABLES[STATE]}",
        )
    elif folder.free_bytes is not None and folder.free_bytes < START_BYTES:
        yield found(
            ID,
            Severity.ERROR,
            f"the state folder {folder.path} has {folder.free_bytes / 1000:.0f} kB free, too little for the records and the log of a start",
            fix=f"make room there, or choose another folder with {VARIABLES[STATE]}",
        )


def _temporary(folder: Folder, facts: Facts) -> Iterator[Finding]:
    plan = facts.plan
    planned = plan is not None and "TMPDIR" in dict(plan.env)
    if planned and plan is not None and plan.runtime == "docker":
        return  # a folder of the container's
    yield found(
        ID,
        Severity.ERROR,
        f"the temporary folder {folder.path} cannot be written, and the server keeps its sockets there",
        fix="take TMPDIR out of the plan's environment (profile or --set)"
        if planned
        else f"name a writable folder with a short path in {VARIABLES[TEMPORARY]}",
    )
