"""Diagnosis view: what a log says about a failure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DiagnosisView:
    """`id`, `cause` and `fix` are None when the log shows no failure; `evidence` are its lines, oldest first.

    `restarts_since` counts the restarts after that failure.
    """

    source: str
    lines_read: int
    id: str | None = None
    cause: str | None = None
    fix: str | None = None
    permanent: bool | None = None
    evidence: tuple[str, ...] = ()
    restarts_since: int = 0
