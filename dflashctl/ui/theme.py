"""Styles by meaning, and the mark of each severity."""

from __future__ import annotations

from rich.theme import Theme

from dflashctl.core.findings import Severity

THEME = Theme(
    {
        "ok": "green",
        "note": "cyan",
        "warning": "yellow",
        "error": "bold red",
        "hint": "cyan",
        "detail": "dim",
        "heading": "bold",
        "key": "bold",
    }
)

MARKS: dict[Severity, tuple[str, str]] = {
    Severity.OK: ("ok  ", "ok"),
    Severity.NOTE: ("note", "note"),
    Severity.WARNING: ("warn", "warning"),
    Severity.ERROR: ("FAIL", "error"),
    Severity.CRASH: ("bug ", "error"),
}
