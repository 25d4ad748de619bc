"""Remembered verification: which file, by device, inode, size and time of change, was proven to have which SHA-256."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import threading
from typing import TYPE_CHECKING

from dflashctl.core.json_text import json_loads

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = 1
_SAVE_EVERY = 256
_KEPT = 200_000


class ProvenFiles:
    """A memory in one JSON file; losing it costs one verification, never a wrong answer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, str] | None = None
        self._unsaved = 0
        self._lock = threading.Lock()

    def sha256(self, status: os.stat_result) -> str | None:
        """The proven hash of exactly this file in exactly this state."""
        with self._lock:
            return self._loaded().get(_key(status))

    def remember(self, status: os.stat_result, sha256: str) -> None:
        with self._lock:
            self._loaded()[_key(status)] = sha256
            self._unsaved += 1
            if self._unsaved >= _SAVE_EVERY:
                self._save()

    def save(self) -> None:
        with self._lock:
            if self._unsaved:
                self._save()

    def _loaded(self) -> dict[str, str]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def _read(self) -> dict[str, str]:
        try:
            data = json_loads(self._path.read_text(encoding="utf-8"))
            entries = data["files"] if data["version"] == _VERSION else {}
            return {str(key): str(value) for key, value in entries.items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def _save(self) -> None:
        known = {**self._read(), **self._loaded()}
        kept = dict(list(known.items())[-_KEPT:])
        with contextlib.suppress(OSError):  # a memory that cannot be written is only slower
            write_whole(self._path, json.dumps({"version": _VERSION, "files": kept}))
        self._known, self._unsaved = kept, 0


def write_whole(path: Path, text: str, mode: int = 0o600) -> None:
    """Replace `path` at once, so that a reader or a crash never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _key(status: os.stat_result) -> str:
    return f"{status.st_dev}:{status.st_ino}:{status.st_size}:{status.st_mtime_ns}"
