"""Places: where this user's state and short-lived files lie."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError
from dflashctl.edges.private_files import private_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

# UNIX socket paths end at 107 bytes; SGLang puts about 40 of its own below TMPDIR.
_LONGEST = 60


def state_folder(environ: Mapping[str, str]) -> Path:
    """DFLASHCTL_STATE_DIR, else `dflashctl` in the user's state folder."""
    chosen = environ.get("DFLASHCTL_STATE_DIR")
    if chosen:
        return Path(chosen).absolute()
    home = environ.get("XDG_STATE_HOME") or os.path.join(
        environ.get("HOME") or os.path.expanduser("~"), ".local/state"
    )
    return Path(home).absolute() / "dflashctl"


def fresh_runtime_folder(environ: Mapping[str, str], key: str) -> Path:
    """An empty private folder whose short name is made from `key`, so that one left by a crash is reused."""
    short = _short(key)
    problems = []
    for base in _runtime_bases(environ):
        if len(base) > _LONGEST:
            continue
        try:
            os.close(private_folder(base))
            path = Path(base) / short
            remove_folder(path)
            path.mkdir(mode=0o700)
        except StateError as error:
            problems.append(error.message.removeprefix("state folder "))
            continue
        except OSError as error:
            problems.append(f"'{base}' cannot be used: {(error.strerror or str(error)).lower()}")
            continue
        return path
    raise StateError(
        f"no runtime folder (for short-lived files) can be made: {'; '.join(problems) or 'every candidate has too long a path'}",
        hint="name a writable folder with a short path in DFLASHCTL_RUNTIME_DIR",
    )


def runtime_place(environ: Mapping[str, str]) -> str:
    """The folder in which `fresh_runtime_folder` would make its own; the last one it would try when none can be used."""
    bases = _runtime_bases(environ)
    short = [base for base in bases if len(base) <= _LONGEST]
    return next((base for base in short if is_usable(base)), (short or bases)[-1])


def is_usable(base: str) -> bool:
    """Whether it is a private folder of this user, or can be made."""
    try:
        os.close(private_folder(base, create=False))
    except FileNotFoundError:
        above = next((folder for folder in Path(base).parents if folder.exists()), Path("/"))
        return above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    except (OSError, StateError):
        return False
    return os.access(base, os.W_OK | os.X_OK)


def sweep_runtime_folder(environ: Mapping[str, str], key: str) -> None:
    """Remove what a crash left in the place of `fresh_runtime_folder`: a key may be among it."""
    for base in _runtime_bases(environ):
        with contextlib.suppress(OSError, StateError):
            os.close(private_folder(base, create=False))
            remove_folder(Path(base) / _short(key))


def _short(key: str) -> str:
    import hashlib

    return hashlib.sha256(os.fsencode(key)).hexdigest()[:8]


def remove_folder(path: Path) -> None:
    """Remove it with all it holds; what cannot be removed stays."""
    import shutil

    with contextlib.suppress(OSError):
        shutil.rmtree(path, ignore_errors=True)


def _runtime_bases(environ: Mapping[str, str]) -> tuple[str, ...]:
    chosen = environ.get("DFLASHCTL_RUNTIME_DIR")
    if chosen:
        return (os.path.abspath(chosen),)
    own = f"dflashctl-{os.geteuid()}"
    bases = [os.path.join(environ[name], "dflashctl") for name in ("XDG_RUNTIME_DIR",) if environ.get(name)]
    bases += [os.path.join(environ[name], own) for name in ("TMPDIR",) if environ.get(name)]
    return (*bases, f"/tmp/{own}", f"/dev/shm/{own}")  # noqa: S108 - private folders, checked after they are made
