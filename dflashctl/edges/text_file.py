"""Small files of /proc and /sys, where absence and refusal are answers."""

from __future__ import annotations

from pathlib import Path


def read_text(path: str | Path) -> str | None:
    """The text without its final line break, None when it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").rstrip("\n")
    except OSError:
        return None


def read_int(path: str | Path) -> int | None:
    """The number in that file, None when there is none."""
    text = read_text(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
