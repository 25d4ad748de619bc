"""Log file: a rotated file that never makes its writer wait or fail; what could not be written is counted."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from dflashctl.edges import private_files

if TYPE_CHECKING:
    from pathlib import Path


class LogFile:
    """Rotated at `max_bytes` into .1 … .`kept`; `lost_lines` counts what a full or failing disk refused."""

    def __init__(self, path: Path, *, max_bytes: int = 64 * 1024 * 1024, kept: int = 5) -> None:
        self._path = path
        self._name = path.name
        self._folder = _folder(path)
        self._max_bytes = max_bytes
        self._kept = kept
        self._descriptor = -1
        self._size = 0
        self._lost_now = 0
        self._torn = False
        self.lost_lines = 0

    def write(self, lines: list[str]) -> None:
        """Append the lines, or count them as lost."""
        content = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        if self._lost_now or self._torn:
            note = f"\n[dflashctl: {self._lost_now} lines lost: they could not be written]\n"
            content = note.encode() + content
        try:
            self._append(content)
        except OSError:
            self._lost_now += len(lines)
            self.lost_lines += len(lines)
        else:
            self._lost_now, self._torn = 0, False

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        os.close(self._folder)
        self._descriptor = self._folder = -1

    def _append(self, content: bytes) -> None:
        self._follow_name()
        if self._descriptor < 0 or self._size + len(content) > self._max_bytes:
            self._open()
        written = os.write(self._descriptor, content)
        self._size += written
        if written < len(content):
            self._torn = True
            raise OSError(f"{written} of {len(content)} bytes written")

    def _follow_name(self) -> None:
        """Let go of a file that somebody removed or moved away, and of a folder: nobody would find the lines there."""
        if self._descriptor >= 0:
            with contextlib.suppress(FileNotFoundError):
                named = os.stat(self._path, follow_symlinks=False)
                if os.path.samestat(named, os.fstat(self._descriptor)):
                    return
            os.close(self._descriptor)
            self._descriptor = -1
        with contextlib.suppress(FileExistsError):
            os.mkdir(self._path.parent, mode=0o700)
        folder = _folder(self._path)
        os.close(self._folder)
        self._folder = folder

    def _open(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
            private_files.rotate(self._folder, self._name, self._kept)
        self._descriptor = private_files.open_private(
            self._folder, self._name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        )
        self._size = os.fstat(self._descriptor).st_size
        if self._size >= self._max_bytes:
            self._open()


def _folder(path: Path) -> int:
    return os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
