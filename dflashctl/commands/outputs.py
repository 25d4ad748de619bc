"""Outputs: whether the files that a long command will write at its end can be written, asked before it begins."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def require_outputs(files: Iterable[tuple[str, Path | None]]) -> None:
    """UsageProblem for the first (option, path) that cannot become a whole file; nothing is left behind or changed."""
    for option, path in files:
        if path is not None:
            _require_file(option, path)


def _require_file(option: str, path: Path) -> None:
    """Files are replaced as a whole, so what counts is the folder: a file beside it is made and removed again."""
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            raise UsageProblem(f"{option} {str(path)!r} is there already and no regular file")
        folder = next(parent for parent in path.parents if os.path.exists(parent))
        if not os.path.isdir(folder):
            raise NotADirectoryError(f"{str(folder)!r} is no folder")
        part = folder / f".{path.name}.{os.getpid()}.part"
        try:
            part.touch(exist_ok=False)
        finally:
            with contextlib.suppress(OSError):
                part.unlink()
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageProblem(
            f"{option} {str(path)!r} cannot be written: {why}", hint="name a file in a folder of yours"
        ) from error
