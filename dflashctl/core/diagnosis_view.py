"""Diagnosis view: what a log says about a failure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class DiagnosisView:
    """`id`, `cause` and `fix` are None when the log shows no failure; `evidence` are its lines, oldest first.

    `restarts_since` counts the restarts after that failure. `in_log` is False when only the supervisor saw it, as with
    a hang or a kill: `evidence` are then the last lines before it. `unpacked`: the source was a gzip file.
    """

    source: str
    lines_read: int
    unpacked: bool = False
    id: str | None = None
    cause: str | None = None
    fix: str | None = None
    permanent: bool | None = None
    evidence: tuple[str, ...] = ()
    restarts_since: int = 0
    in_log: bool = True
