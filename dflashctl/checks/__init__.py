"""Doctor's checks: every module of this folder is one; a check that crashes is a finding, and the others go on."""

from __future__ import annotations

import importlib
import pkgutil
import traceback
from functools import cache
from typing import TYPE_CHECKING, cast

from dflashctl.core.check import Check, CheckOutcome, CheckResult
from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from dflashctl.core.facts import Facts


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return tuple(cast("Check", importlib.import_module(f"{__name__}.{name}")) for name in names)


def examine(facts: Facts, checks: tuple[Check, ...] | None = None) -> tuple[CheckResult, ...]:
    """The outcome of every check."""
    return tuple(_one(check, facts) for check in (all_checks() if checks is None else checks))


def judge(facts: Facts) -> tuple[Finding, ...]:
    """All findings of all checks; `worst` of core.findings gives the verdict."""
    return tuple(finding for result in examine(facts) for finding in result.findings)


def _one(check: Check, facts: Facts) -> CheckResult:
    missing = tuple(need for need in check.NEEDS if not facts.has(need))
    if missing:
        return CheckResult(id=check.ID, outcome=CheckOutcome.LEFT_OUT, missing=missing)
    try:
        findings = tuple(check.check(facts))
    except Exception:  # noqa: BLE001 - one broken check must not hide what the others know
        return CheckResult(id=check.ID, outcome=CheckOutcome.CRASHED, findings=(_crash(check),))
    outcome = CheckOutcome.FOUND if findings else CheckOutcome.PASSED
    return CheckResult(id=check.ID, outcome=outcome, findings=findings)


def _crash(check: Check) -> Finding:
    return Finding(
        id=check.ID,
        severity=Severity.CRASH,
        summary=f"the check {check.ID} itself failed; its answer is unknown, the others stand",
        detail=traceback.format_exc(limit=-3),
        fix="save this machine with --save-machine FILE and report it with this text",
    )
