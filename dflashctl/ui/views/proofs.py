"""Proofs as a table: pass, fail or skipped, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dflashctl.core.smoke import ProofStatus
from dflashctl.ui.verdict_rows import VerdictRow, VerdictRows

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.smoke import Proof

_STYLES = {
    ProofStatus.PASS: "ok",
    ProofStatus.FAIL: "error",
    ProofStatus.SKIPPED: "detail",
    ProofStatus.BROKEN: "error",
}


def proof_lines(proofs: tuple[Proof, ...]) -> list[RenderableType]:
    """One row a proof; the evidence of failures stands below."""
    if not proofs:
        return []
    rows = tuple(
        VerdictRow(
            mark=Text(proof.status.value, style=_STYLES[proof.status]),
            title=Text(proof.title, style="key"),
            why=proof.why,
        )
        for proof in proofs
    )
    evidence = [
        Text(f"    {line}", style="detail")
        for proof in proofs
        if proof.status is ProofStatus.FAIL
        for line in proof.evidence
    ]
    return [VerdictRows(rows=rows), *evidence]
