"""Findings: what a check, a rule or a log says about the machine, the plan or the server."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Severity(str, Enum):
    """How bad it is; `CRASH` marks a check that itself failed."""

    OK = "ok"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"
    CRASH = "crash"


_RANK = {Severity.OK: 0, Severity.NOTE: 1, Severity.WARNING: 2, Severity.CRASH: 3, Severity.ERROR: 4}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One statement with its evidence (`detail`) and what to do (`fix`: a command or a sentence)."""

    id: str
    severity: Severity
    summary: str
    detail: str | None = None
    fix: str | None = None


def worst(findings: Iterable[Finding]) -> Severity:
    """The highest severity, `OK` when there are none."""
    return max((f.severity for f in findings), key=_RANK.__getitem__, default=Severity.OK)


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that forbid going on."""
    return tuple(f for f in findings if f.severity is Severity.ERROR)
