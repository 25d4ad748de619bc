"""Setting bad cache files aside: the entry of this repository goes, never a file that a link in it leads to.

People link weights into a cache from storage that they share with others. Such a link is ours to replace; what it
points to is not.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from dflashctl.core.errors import Permanent
from dflashctl.edges.hub_cache import own_repository

_ASIDE = "set-aside"


def set_aside(snapshot: Path, path: str) -> Path | None:
    """The new place of the bad `path`, or of the link to it when its content lies elsewhere; None when it is gone.

    The blob may serve several snapshots: it goes, and the link to it with it. Permanent when the repository's own
    folders lead out of the cache, or when it cannot be written.
    """
    shown = snapshot / path
    repository = own_repository(snapshot.parent.parent)
    entry = _entry(shown)
    if entry is None:
        return None
    if repository is None or not entry.is_relative_to(repository / "snapshots"):
        raise Permanent(
            f"{str(shown)!r} is bad, and a folder on its way is a link that leads out of this cache: "
            f"it really is {os.path.realpath(shown)!r}",
            hint="repair it where it lies, or remove the link and fetch again; nothing there was touched",
        )
    blob = _entry(entry.parent / os.readlink(entry)) if entry.is_symlink() else None
    goes = blob if blob is not None and blob.parent == repository / "blobs" else entry
    place = repository / _ASIDE / f"{goes.name}.{time.time_ns()}"
    try:
        place.parent.mkdir(exist_ok=True)
        os.replace(goes, place)  # renames a link itself, not what it points to
        if goes is not entry:
            entry.unlink()
    except OSError as error:
        raise Permanent(
            f"{str(shown)!r} is bad and cannot be moved aside: {error.strerror}",
            hint="repair it where the cache can be written, or set HF_HUB_CACHE to another one",
        ) from error
    return place


def _entry(path: Path) -> Path | None:
    """The directory entry itself under its folder's real name, whatever it is; None when there is none."""
    try:
        entry = Path(os.path.realpath(path.parent, strict=True)) / path.name
    except OSError:
        return None
    return entry if os.path.lexists(entry) else None
