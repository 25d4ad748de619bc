"""Log tail: the last lines of a rotated log, and those that are still to come."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_BLOCK_BYTES = 64 * 1024


def tail(files: Sequence[Path], count: int | None) -> tuple[str, ...]:
    """The last `count` lines over all files, which are given oldest first; reads no more than it must."""
    lines: list[str] = []
    for path in reversed(files):
        missing = None if count is None else count - len(lines)
        if missing is not None and missing <= 0:
            break
        lines = _last_lines(path, missing) + lines
    return tuple(lines)


def _last_lines(path: Path, count: int | None) -> list[str]:
    try:
        with open(path, "rb") as file:
            content = file.read() if count is None else _end_of(file, count)
    except OSError:
        return []
    lines = content.decode("utf-8", "replace").splitlines()
    return lines if count is None else lines[len(lines) - min(count, len(lines)) :]


def _end_of(file: IO[bytes], count: int) -> bytes:
    position = file.seek(0, os.SEEK_END)
    content = b""
    while position > 0 and content.count(b"\n") <= count:
        size = min(_BLOCK_BYTES, position)
        position -= size
        file.seek(position)
        content = file.read(size) + content
    return content


class Follower:
    """Begins at the end of the file as it is now, and goes on in the next one when it is rotated away."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode, self._offset = _end(path)
        self._rest = b""

    def new_lines(self) -> tuple[str, ...]:
        """Whole lines only; an unfinished one is kept for the next call."""
        content = self._rest + self._read()
        whole, newline, self._rest = content.rpartition(b"\n")
        return tuple((whole + newline).decode("utf-8", "replace").splitlines())

    def _read(self) -> bytes:
        inode, _ = _end(self._path)
        if inode == self._inode:
            return self._take(self._path)
        rotated = self._path.with_name(f"{self._path.name}.1")
        content = self._take(rotated) if _end(rotated)[0] == self._inode else b""
        self._inode, self._offset = inode, 0
        return content + self._take(self._path)

    def _take(self, path: Path) -> bytes:
        try:
            with open(path, "rb") as file:
                file.seek(self._offset)
                content = file.read()
        except OSError:
            return b""
        self._offset += len(content)
        return content


def _end(path: Path) -> tuple[int, int]:
    """Inode and size; zeros for a file that is not there."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_ino, status.st_size
