"""Diagnose: the first cause in a log, with its evidence and what to do, from signatures of known failures."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.core.routine_lines import telling

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

EVIDENCE_LINES = 40
_BEFORE = 2  # lines that are shown above the first that tells
_EXCEPTION = re.compile(r"^(?:\[[^\]]*\] )?(?P<name>[\w.]*(?:Error|Exception|Interrupt)): ?(?P<text>.*)$")


class Rank(str, Enum):
    """`CONSEQUENCE` marks what follows from an earlier failure and is only named when nothing else is found."""

    FATAL = "fatal"
    CONSEQUENCE = "consequence"


@dataclass(frozen=True, kw_only=True)
class Signature:
    """A failure that is known by its words in the log.

    `pattern` is a regular expression over the log's text, whose named groups may stand in `cause` and `fix` as
    {name}. `permanent` says that starting again cannot help. `examples` match, `not_examples` do not.
    """

    id: str
    pattern: str
    cause: str
    fix: str
    permanent: bool
    rank: Rank = Rank.FATAL
    source: str | None = None
    examples: tuple[str, ...] = ()
    not_examples: tuple[str, ...] = ()

    def search(self, text: str) -> re.Match[str] | None:
        return re.search(self.pattern, text, re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The first cause; `id` "unknown" when only an exception's own words could be found."""

    id: str
    cause: str
    fix: str | None
    permanent: bool
    evidence: tuple[str, ...]

    def finding(self) -> Finding:
        return Finding(
            id=self.id,
            severity=Severity.ERROR,
            summary=self.cause,
            detail="\n".join(self.evidence) or None,
            fix=self.fix,
        )


def diagnose(lines: Sequence[str], signatures: Iterable[Signature]) -> Diagnosis | None:
    """The earliest fatal signature, else the first exception, else a consequence; None when nothing is found."""
    text = "\n".join(lines)
    found = [(match.start(), s, match) for s in signatures if (match := s.search(text)) is not None]
    fatal = [item for item in found if item[1].rank is Rank.FATAL]
    if fatal:
        return _of(lines, text, min(fatal, key=lambda item: item[0]))
    return _first_exception(lines) or (_of(lines, text, min(found, key=lambda i: i[0])) if found else None)


def _of(lines: Sequence[str], text: str, hit: tuple[int, Signature, re.Match[str]]) -> Diagnosis:
    start, signature, match = hit
    first = text.count("\n", 0, start)
    last = text.count("\n", 0, match.end())
    facts = {name: value or "?" for name, value in match.groupdict().items()}
    return Diagnosis(
        id=signature.id,
        cause=signature.cause.format_map(facts),
        fix=signature.fix.format_map(facts),
        permanent=signature.permanent,
        evidence=(*telling(lines[:first], _BEFORE), *lines[first : last + 1]),
    )


def _first_exception(lines: Sequence[str]) -> Diagnosis | None:
    traced = False
    for number, line in enumerate(lines):
        traced = traced or "Traceback (most recent call last)" in line
        found = _EXCEPTION.match(line)
        if traced and found:
            text = f"{found['name'].rpartition('.')[2]}: {found['text']}"
            return Diagnosis(
                id="unknown",
                cause=text,
                fix=None,
                permanent=False,
                evidence=(*telling(lines[:number], 2 * _BEFORE), line),
            )
    return None
