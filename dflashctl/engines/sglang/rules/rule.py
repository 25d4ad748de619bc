"""Rule: when something is so for some releases, what follows and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.engines.sglang.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`consequence` and `fix` may name the situation: "{s.block}". `source` is where SGLang does it.

    Severity ERROR: SGLang refuses or dies. WARNING: something that was asked for silently becomes something else.
    NOTE: a default that matters. `flag` and `becomes` say which option has which value in the end.
    """

    id: str
    when: Callable[[Situation], bool | None]
    consequence: str
    severity: Severity
    source: str
    since: str | None = None
    until: str | None = None
    fix: str | None = None
    flag: str | None = None
    becomes: str | None = None

    def judge(self, situation: Situation) -> Finding | None:
        """The finding when the rule holds there."""
        if not situation.among(self.since, self.until) or not self.when(situation):
            return None
        return Finding(
            id=self.id,
            severity=self.severity,
            summary=self.consequence.format(s=situation),
            detail=f"SGLang {situation.release}; {self.source}",
            fix=self.fix.format(s=situation) if self.fix else None,
        )
