"""After the start: does the draft run as planned? The log line of the draft runner against the plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dflashctl.core.engine import Argument

_DRAFT_BACKEND = "--speculative-draft-attention-backend"


def differences(
    facts: Mapping[str, str],
    arguments: Sequence[Argument],
    /,
    *,
    block_size: int | None,
    draft_window_size: int | None,
) -> tuple[Finding, ...]:
    """What the draft runner's log line says differently from the plan; nothing while the line was not seen.

    `facts` are those of `LogMark`, gathered over the log.
    """
    if "draft_attention_backend" not in facts:
        return ()
    asked = next((argument.values[0] for argument in arguments if argument.flag == _DRAFT_BACKEND), None)
    expected = (
        ("draft_attention_backend", "draft attention backend", asked, "--set backends.draft_attention={}"),
        ("block_size", "block size", _text(block_size), "--block-size {}"),
        ("draft_window_size", "draft window", _text(draft_window_size) or "None", "--window-size {}"),
    )
    return tuple(
        _different(key, what, wanted, facts[key], fix)
        for key, what, wanted, fix in expected
        if wanted is not None and key in facts and facts[key] != wanted
    )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _different(key: str, what: str, wanted: str, got: str, fix: str) -> Finding:
    return Finding(
        id=f"started_{key}",
        severity=Severity.WARNING,
        summary=f"{what}: {wanted} was planned, {got} really runs",
        detail="log line: Initialized DFLASH draft runner",
        fix=f"{fix.format(got)} says what runs" if got != "None" else None,
    )
