"""What a comparison means: findings for what is unlike, what cannot be judged and what became worse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.bench_compare import Change
from dflashctl.core.figure_text import figure_text
from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from dflashctl.core.bench_compare import Comparison, RunPair


def regressions(comparison: Comparison, limit: float) -> tuple[str, ...]:
    """Figures that are worse by more than `limit` (a share) with an interval that excludes no change."""
    return tuple(
        f"{pair.label}: {change.metric} {figure_text(change.a)} → {figure_text(change.b)}, {change.loss:.1%} worse"
        for pair in comparison.pairs
        for change in pair.changes
        if change.change is Change.WORSE and change.loss > limit
    )


def judged(
    comparison: Comparison, limit: float | None, *, allow_unlike: bool = False, whole: bool = True
) -> tuple[Finding, ...]:
    """All findings; with a `limit` whatever keeps B from being judged is an error, without one a warning.

    `whole`: B is to have every run of A, as two finished files do; a benchmark that runs now may measure fewer.
    """
    gated = limit is not None
    return (
        *_partners(comparison, gated=gated, whole=whole),
        *_unlike(comparison, allow_unlike=allow_unlike),
        *(finding for pair in comparison.pairs for finding in _unjudged(pair, gated=gated)),
        *(
            Finding(id="bench.max_regression", severity=Severity.ERROR, summary=told)
            for told in (() if limit is None else regressions(comparison, limit))
        ),
    )


def _partners(comparison: Comparison, *, gated: bool, whole: bool) -> tuple[Finding, ...]:
    if not comparison.pairs:
        return (
            Finding(
                id="bench.no_partner",
                severity=Severity.ERROR if gated or whole else Severity.WARNING,
                summary=f"no run of {comparison.a} has a partner in {comparison.b}",
                detail="runs are paired by data set, block size and load",
            ),
        )
    severity = Severity.ERROR if gated and whole else Severity.WARNING
    return tuple(
        Finding(
            id="bench.missing_run",
            severity=severity,
            summary=f"{label}: not judged: {comparison.b} has no such run",
        )
        for label in comparison.only_a
    )


def _unlike(comparison: Comparison, *, allow_unlike: bool) -> tuple[Finding, ...]:
    return tuple(
        Finding(
            id="bench.unlike",
            severity=Severity.WARNING if allow_unlike else Severity.ERROR,
            summary=f"{pair.label}: not comparable: {'; '.join(pair.refusals)}",
            fix=None if allow_unlike else "measure again in the same setting, or --allow-unlike",
        )
        for pair in comparison.pairs
        if pair.refusals
    )


def _unjudged(pair: RunPair, *, gated: bool) -> list[Finding]:
    """What one side lacks. That A lacks it is no fault of B: it is said, and fails only where nothing is left."""
    found = [
        Finding(
            id="bench.unjudged",
            severity=Severity.ERROR if gated and lack.grave and lack.side == "B" else Severity.WARNING,
            summary=f"{pair.label}: not judged in full: {lack.side}: {lack.reason}",
        )
        for lack in pair.lacks
    ]
    if not pair.refusals and not any(change.interval for change in pair.changes):
        found.append(
            Finding(
                id="bench.unjudged",
                severity=Severity.ERROR if gated else Severity.WARNING,
                summary=f"{pair.label}: nothing can be judged: no figure has an interval",
                detail="an interval needs two requests or more that both runs finished",
            )
        )
    return found
