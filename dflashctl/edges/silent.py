"""Silent: file systems that give no answer, such as a network disk whose server is away.

Whoever looks at one waits inside the kernel, where Ctrl-C does not reach: so a thread looks, and is left behind.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LIMIT_S = 5.0


def silent(paths: Iterable[str], limit_s: float = LIMIT_S) -> frozenset[str]:
    """Those of `paths` of which no answer came within `limit_s`, all of them asked at once; any error is an answer."""
    answered = {path: threading.Event() for path in paths}
    for path, event in answered.items():
        threading.Thread(target=_look, args=(path, event), daemon=True).start()
    until = time.monotonic() + limit_s
    return frozenset(
        path for path, event in answered.items() if not event.wait(max(0.0, until - time.monotonic()))
    )


def _look(path: str, answered: threading.Event) -> None:
    """Ask the disk itself, not what the kernel remembers of it: NFS passes each statfs on to its server."""
    with suppress(OSError, ValueError):
        os.statvfs(nearest(Path(os.path.realpath(path))))
    answered.set()


def nearest(path: Path) -> Path:
    """The folder itself or the first above it that exists, as far as this user can see; a file is in the way."""
    return next((folder for folder in (path, *path.parents) if os.path.exists(folder)), Path("/"))
