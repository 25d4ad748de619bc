"""The verdict: one sentence and one exit code from all that was found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import gpus_named
from dflashctl.core.errors import ExitCode
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.report import Outcome

if TYPE_CHECKING:
    from dflashctl.core.facts import Facts


def outcome_of(findings: tuple[Finding, ...]) -> tuple[Outcome, ExitCode]:
    """Any error fails; a check that crashed leaves the answer incomplete without forbidding anything."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return Outcome.FAILED, ExitCode.CHECK_FAILED
    return (Outcome.PARTIAL if Severity.CRASH in severities else Outcome.OK), ExitCode.OK


def verdict(facts: Facts, findings: tuple[Finding, ...], *, saved: bool = False) -> str:
    """What a person reads first."""
    failures = sum(finding.severity is Severity.ERROR for finding in findings)
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    subject = f"{'the saved' if saved else 'this'} machine ({_gpus(facts)})"
    if facts.named:
        subject = f"{gpus_named(facts.gpus)} of {subject}"
    if facts.profile is None:
        state = _count(failures, "failure") if failures else "in order"
        return f"{subject}: {state}{_and(warnings)}"
    if failures:
        return f"{subject} cannot carry {facts.profile.name}: {_count(failures, 'failure')}{_and(warnings)}"
    return f"{subject} can carry {facts.profile.name}{_and(warnings)}"


def _gpus(facts: Facts) -> str:
    names: dict[str, int] = {}
    for gpu in facts.machine.gpus:
        names[gpu.name] = names.get(gpu.name, 0) + 1
    return " and ".join(f"{count}x {name}" for name, count in names.items()) or "no GPU"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'s' if number != 1 else ''}"


def _and(warnings: int) -> str:
    return f", {_count(warnings, 'warning')}" if warnings else ""
