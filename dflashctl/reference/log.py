"""Log lines in SGLang's format, ``[YYYY-mm-dd HH:MM:SS] text``, on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

_LEVELS = ("debug", "info", "warning", "error", "critical")


class Log:
    """Writes the lines at or above a level. Safe from several threads: each line is one write."""

    def __init__(self, level: str = "info") -> None:
        self._floor = _LEVELS.index(level)

    def say(self, text: str) -> None:
        """Write ordinary progress."""
        self._write("info", text)

    def caution(self, text: str) -> None:
        """Write something that works but was probably not meant."""
        self._write("warning", text)

    def fail(self, text: str) -> None:
        """Write a failure."""
        self._write("error", text)

    def _write(self, level: str, text: str) -> None:
        if _LEVELS.index(level) >= self._floor:
            with suppress(OSError):  # nobody reads the log any more: serving goes on
                sys.stderr.write(f"{time.strftime('[%Y-%m-%d %H:%M:%S]')} {text}\n")
                sys.stderr.flush()
