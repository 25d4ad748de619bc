"""Private files: folders and files of this user alone, written all or nothing, never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from dflashctl.core.errors import StateError

_OPEN_TO_OTHERS = 0o022
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_NOFOLLOW | os.O_CLOEXEC


def private_folder(path: str, *, create: bool = True) -> int:
    """A descriptor of the folder at `path` (its last part may be a link), refused when others could write there."""
    real = os.path.realpath(path)
    if create:
        try:
            os.makedirs(real, mode=0o700, exist_ok=True)
        except OSError as error:
            raise unusable(path, error) from error
    return checked(path, lambda: os.open(real, _FOLDER))


def private_subfolder(parent: int, name: str, shown: str, *, create: bool = True) -> int:
    """As private_folder, below an open folder, and never a link."""
    if create:
        try:
            os.mkdir(name, mode=0o700, dir_fd=parent)
        except FileExistsError:
            pass
        except OSError as error:
            raise unusable(shown, error) from error
    return checked(shown, lambda: os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=parent))


def checked(shown: str, opened: object) -> int:
    """The descriptor from `opened()` when the folder is this user's own and closed to others."""
    try:
        descriptor: int = opened()  # type: ignore[operator]
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unusable(shown, error) from error
    status = os.fstat(descriptor)
    problem = None
    if status.st_uid != os.geteuid():
        problem = f"belongs to user {status.st_uid}, not to you ({os.geteuid()})"
    elif status.st_mode & _OPEN_TO_OTHERS:
        problem = f"is writable by others (mode {stat.S_IMODE(status.st_mode):04o})"
    if problem is None:
        return descriptor
    os.close(descriptor)
    raise StateError(
        f"state folder '{shown}' {problem}",
        hint=f"chmod go-w '{shown}', or choose another folder with DFLASHCTL_STATE_DIR",
    )


def unusable(shown: str, error: OSError) -> StateError:
    """What to say of a folder or file that cannot be used."""
    linked = error.errno in {errno.ELOOP, errno.ENOTDIR}
    why = "is a link or no folder" if linked else f"cannot be used: {os.strerror(error.errno or 0).lower()}"
    return StateError(f"state folder '{shown}' {why}", hint="choose another folder with DFLASHCTL_STATE_DIR")


def open_private(folder: int, name: str, flags: int) -> int:
    """Open or create a file of mode 0600 below `folder`; a link is refused by OSError (ELOOP)."""
    return os.open(name, flags | _FILE, 0o600, dir_fd=folder)


def read_private(folder: int, name: str, limit_bytes: int) -> bytes:
    """The file's content; OSError when missing, ValueError when larger than `limit_bytes`."""
    descriptor = open_private(folder, name, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        size = os.fstat(descriptor).st_size
        if size > limit_bytes:
            raise ValueError(f"{size} bytes, at most {limit_bytes} are expected")
        return file.read(limit_bytes)


def replace_private(folder: int, name: str, content: bytes) -> None:
    """Replace a file so that a crash at any moment leaves the old or the new one; OSError leaves the old one."""
    temporary = f".{name}.{os.getpid()}.tmp"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary, dir_fd=folder)
    descriptor = open_private(folder, temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def append_private(folder: int, name: str, content: bytes) -> None:
    """Append in one write."""
    descriptor = open_private(folder, name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def rotate(folder: int, name: str, keep: int) -> None:
    """Name → name.1 → … → name.`keep`; the oldest is dropped."""
    for number in range(keep - 1, -1, -1):
        old = name if number == 0 else f"{name}.{number}"
        with contextlib.suppress(FileNotFoundError):
            os.replace(old, f"{name}.{number + 1}", src_dir_fd=folder, dst_dir_fd=folder)
