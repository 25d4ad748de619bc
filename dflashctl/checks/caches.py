"""caches: the folders of compiled kernels: writable, local, and free of locks that nobody holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.engine_folders import CACHES
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.host import Folder

ID = "caches"
NEEDS = ("host", "sglang_plan")
SOURCE = (
    "pytorch/pytorch#173679: `Stale file handle` in the Triton cache on NFS, one rank dies and the others wait; "
    "flashinfer-ai/flashinfer#972: a lock file of a killed build stops every later start"
)
_SHARED = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "smb3", "ceph", "fuse.sshfs", "afs"}


def check(facts: Facts) -> Iterator[Finding]:
    if facts.host is None or (facts.plan and facts.plan.runtime == "docker"):
        return
    for folder in facts.host.folders:
        if folder.kind in CACHES:
            yield from _cache(folder, CACHES[folder.kind])


def _cache(folder: Folder, variable: str) -> Iterator[Finding]:
    if folder.writable is False:
        yield found(
            ID,
            Severity.ERROR,
            f"the {folder.kind} cache {folder.path} cannot be written, and the engine compiles kernels into it",
            fix=f"make it writable for this user, or set {variable} to a local folder",
        )
    elif folder.file_system in _SHARED:
        yield found(
            ID,
            Severity.WARNING,
            f"the {folder.kind} cache {folder.path} is on {folder.file_system}: ranks race there and may die",
            fix=f"set {variable} to a folder on a local disk",
        )
    if folder.stale_locks:
        yield found(
            ID,
            Severity.WARNING,
            f"{folder.stale_locks} build lock{'s' if folder.stale_locks > 1 else ''} older than 15 minutes in "
            f"{folder.path}: if no server is starting, the next one will wait for ever",
            fix=f"with no server running: find {folder.path} -name lock -delete",
        )
