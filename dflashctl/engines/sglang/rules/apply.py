"""Applies every rule to a situation, errors first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.engine import Argument
from dflashctl.core.findings import Severity
from dflashctl.engines.sglang.rules import (
    backends,
    block,
    graphs,
    hybrid,
    layout,
    memory,
    ranges,
    replayssm,
    serving,
    states,
    support,
)

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
    *replayssm.RULES,
    *states.RULES,
    *memory.RULES,
    *graphs.RULES,
    *ranges.RULES,
    *serving.RULES,
)
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """The findings of all rules that hold, errors first, and what the engine makes of options."""

    findings: tuple[Finding, ...]
    resolved: tuple[Argument, ...]


def judge(situation: Situation) -> Judgement:
    """Every rule applied to the situation."""
    held = [(rule, finding) for rule in ALL_RULES if (finding := rule.judge(situation))]
    return Judgement(
        findings=tuple(sorted((f for _, f in held), key=lambda finding: _ORDER.index(finding.severity))),
        resolved=tuple(
            Argument(
                flag=rule.flag,
                values=(rule.becomes.format(s=situation),) if rule.becomes else (),
                origin=f"engine ({rule.id})",
                why=finding.summary,
            )
            for rule, finding in held
            if rule.flag is not None
        ),
    )
