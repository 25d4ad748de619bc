"""Instance lock: the file whose lock decides who owns an instance, signed by its owner."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError
from dflashctl.edges import private_files
from dflashctl.edges.processes import identify

if TYPE_CHECKING:
    from dflashctl.core.instance import Identity

LOCK = "lock"
# A reader holds the lock, shared, for an instant; an owner must outwait it.
_PATIENCE_S = 0.25
_BRIEF = " brief"


def take_lock(folder: int, shown: str, *, brief: bool) -> int:
    """Own it; BlockingIOError when somebody else does."""
    try:
        lock = private_files.open_private(folder, LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise private_files.unusable(os.path.join(shown, LOCK), error) from error
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # noqa: PERF203 - the loop is the wait
            if time.monotonic() > end:
                os.close(lock)
                raise
            time.sleep(0.01)
        except OSError as error:
            os.close(lock)
            raise private_files.unusable(os.path.join(shown, LOCK), error) from error
        else:
            break
    try:
        sign(lock, shown, brief=brief)
    except StateError:
        os.close(lock)
        raise
    return lock


def sign(lock: int, shown: str, *, brief: bool = False) -> None:
    """Write our pid into the lock, so that a second comer can name us before there is a record; StateError when it cannot."""
    try:
        signature = f"{os.getpid()}{_BRIEF if brief else ''}\n".encode()
        os.pwrite(lock, signature, 0)
        os.ftruncate(lock, len(signature))
    except OSError as error:
        raise private_files.unusable(os.path.join(shown, LOCK), error) from error


def signature(folder: int) -> tuple[int | None, bool]:
    """Who has signed it, None where nobody can be read; and whether that owner gives it up soon."""
    try:
        text = private_files.read_private(folder, LOCK, 64).decode("utf-8", "replace")
        return int(text.split()[0]), text.endswith(f"{_BRIEF}\n")
    except (OSError, ValueError, IndexError):
        return None, False


def is_locked(folder: int) -> bool:
    """Whether somebody owns it now."""
    try:
        lock = private_files.open_private(folder, LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def holder(folder: int, owner: int) -> Identity | None:
    """The process of that pid here, if it has the lock's file open: the pid may be one of another namespace."""
    try:
        lock = os.stat(LOCK, dir_fd=folder, follow_symlinks=False)
        found = identify(owner)
        opened = [entry.path for entry in os.scandir(f"/proc/{owner}/fd")]
    except OSError:
        return None
    for path in opened:
        with contextlib.suppress(OSError):
            if os.path.samestat(os.stat(path), lock):
                return found
    return None
