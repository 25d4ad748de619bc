"""Proofs as a table: pass, fail or skipped, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dflashctl.core.smoke import ProofStatus

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dflashctl.core.smoke import Proof

_STYLES = {ProofStatus.PASS: "ok", ProofStatus.FAIL: "error", ProofStatus.SKIPPED: "detail"}


def proof_lines(proofs: tuple[Proof, ...]) -> list[RenderableType]:
    """One row a proof; the evidence of failures stands below."""
    if not proofs:
        return []
    table = Table.grid(padding=(0, 2))
    for proof in proofs:
        table.add_row(
            Text(proof.status.value, style=_STYLES[proof.status]), Text(proof.title, style="key"), proof.why
        )
    evidence = [
        Text(f"    {line}", style="detail")
        for proof in proofs
        if proof.status is ProofStatus.FAIL
        for line in proof.evidence
    ]
    return [table, *evidence]
