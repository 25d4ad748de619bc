"""smoke: one line a proof, the evidence under those that failed, and the sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.smoke import Proof, ProofStatus, SmokeResult
from dflashctl.ui.verdict_rows import VerdictRow, VerdictRows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.report import Report

SHOWS_FINDINGS = True
_MARKS = {
    ProofStatus.PASS: ("pass", "ok"),
    ProofStatus.FAIL: ("FAIL", "error"),
    ProofStatus.SKIPPED: ("skip", "note"),
    ProofStatus.BROKEN: ("bug ", "error"),
}


def render(report: Report) -> list[RenderableType]:
    result = report.data
    if not isinstance(result, SmokeResult):
        return []
    lines: list[RenderableType] = [_heading(result), _rows(result.proofs)]
    for proof in result.proofs:
        lines += _evidence(proof)
    counts = ", ".join(
        f"{result.count(status)} {word}" for status, word in _WORDS.items() if result.count(status)
    )
    bad = any(proof.status.bad for proof in result.proofs)
    lines.append(Text(counts, style="error" if bad else "ok"))
    if result.saved_reference:
        lines.append(Text(f"reference run saved to {result.saved_reference}"))
    return lines


_WORDS = {
    ProofStatus.PASS: "passed",
    ProofStatus.FAIL: "failed",
    ProofStatus.SKIPPED: "skipped",
    ProofStatus.BROKEN: "broken",
}


def _heading(result: SmokeResult) -> Text:
    parts = [result.model or "unknown model", f"at {result.url}"]
    if result.engine_version:
        parts.append(f"engine {result.engine_version}")
    if result.block_size:
        parts.append(f"block {result.block_size}")
    return Text(", ".join(parts), style="heading")


def _rows(proofs: tuple[Proof, ...]) -> VerdictRows:
    return VerdictRows(rows=tuple(_row(proof) for proof in proofs))


def _row(proof: Proof) -> VerdictRow:
    mark, style = _MARKS[proof.status]
    took = "" if proof.elapsed_s is None else f"{proof.elapsed_s:.1f} s"
    return VerdictRow(mark=Text(mark, style=style), title=Text(proof.title), why=proof.why, took=took)


def _evidence(proof: Proof) -> list[RenderableType]:
    if not proof.evidence:
        return []
    style = "error" if proof.status is ProofStatus.FAIL else "note"
    return [Text(f"{proof.id}:", style=style), *(Text(f"  {line}") for line in proof.evidence)]
