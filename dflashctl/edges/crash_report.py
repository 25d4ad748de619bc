"""The crash report: versions and traceback in a private file, ready to paste into an issue."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def write_crash_report(argv: Sequence[str], environ: Mapping[str, str], error: Exception) -> Path:
    """Write the report (mode 0600) into the state folder, else the temporary folder; the path is returned."""
    text = "\n".join(
        (
            f"dflashctl {__version__}",
            f"Python {sys.version}",
            f"platform {platform.platform()}",
            f"command {' '.join(_without_values(argv))}",
            "".join(traceback.format_exception(error)),
        )
    )
    for folder in _folders(environ):
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, name = tempfile.mkstemp(prefix="crash-", suffix=".txt", dir=folder)
        except OSError:
            continue
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        return Path(name)
    return Path(os.devnull)


def _folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    state = environ.get("DFLASHCTL_STATE_DIR")
    own = (Path(state),) if state else ()
    return (*own, Path(tempfile.gettempdir()))


def _without_values(argv: Sequence[str]) -> list[str]:
    """Words of the command line; what follows `=` is left out, since it may be private."""
    return [word.split("=", 1)[0] + ("=…" if "=" in word else "") for word in argv]
