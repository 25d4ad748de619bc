"""The files that a command reads and writes: no output may destroy an input or another output, and each can be written.

All of it is asked before a long command begins.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from dflashctl.env import Env


def refuse_clashes(env: Env, outputs: Mapping[str, str | None], inputs: Iterable[str | None] = ()) -> None:
    """UsageProblem when an output (by its option) is the same file as an input or as another output.

    Files are the same by whatever name: another spelling of the path, a symbolic link or a hard link.
    """
    taken = {_identity(env.cwd / path): f"{path!r}, which is read" for path in inputs if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        found = _identity(env.cwd / path)
        if found in taken:
            raise UsageProblem(
                f"{option} {path!r} would overwrite {taken[found]}", hint=f"another file for {option}"
            )
        taken[found] = f"{path!r}, which {option} writes"


def _identity(path: Path) -> object:
    resolved = path.resolve()  # also "missing/../file", whose folder a write would make
    try:
        status = resolved.stat()
    except OSError:
        return str(resolved)
    return status.st_dev, status.st_ino


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
