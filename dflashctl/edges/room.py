"""Room: whether a file system has space for one more small file."""

from __future__ import annotations

import os
from pathlib import Path

from dflashctl.edges.silent import nearest

# A record with its temporary file: a few pages.
_NEEDED_BYTES = 16 * 1024


def free_bytes(info: os.statvfs_result) -> int:
    """What this user may still write: root may use what is reserved for it."""
    return (info.f_bfree if os.geteuid() == 0 else info.f_bavail) * info.f_frsize


def has_room(path: str) -> bool:
    """Whether this user could write a small file at `path`, which need not be there yet; True when nobody can tell."""
    try:
        info = os.statvfs(nearest(Path(path)))
    except OSError:
        return True
    if info.f_blocks == 0:  # a file system that does not count
        return True
    has_files = info.f_files == 0 or info.f_favail > 0  # btrfs and others count no files
    return free_bytes(info) >= _NEEDED_BYTES and has_files
