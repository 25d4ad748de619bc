"""The files that a command reads and writes: no output may destroy an input or another output."""

from __future__ import annotations

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
