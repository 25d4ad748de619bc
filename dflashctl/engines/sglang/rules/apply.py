"""Applies every rule to a situation, errors first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules import backends, block, graphs, hybrid, layout, memory, serving, support

if TYPE_CHECKING:
    from dflashctl.core.findings import Finding
    from dflashctl.engines.sglang.rules.rule import Rule
    from dflashctl.engines.sglang.situation import Situation

ALL_RULES: tuple[Rule, ...] = (
    *support.RULES,
    *layout.RULES,
    *block.RULES,
    *backends.RULES,
    *hybrid.RULES,
    *memory.RULES,
    *graphs.RULES,
    *serving.RULES,
)
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def judge(situation: Situation) -> tuple[Finding, ...]:
    """The findings of all rules that hold, errors first."""
    found = [finding for rule in ALL_RULES if (finding := rule.judge(situation))]
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity)))
