"""Check: the contract of one doctor check, its outcome, and the words that checks share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from dflashctl.core.findings import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.core.facts import Facts
    from dflashctl.core.machine import Gpu


_ROUND_FROM_BYTES = 100 * 10**9


class Check(Protocol):
    """A module of dflashctl.checks: NEEDS are the facts without which it is left out, SOURCE says why it exists."""

    ID: str
    NEEDS: tuple[str, ...]
    SOURCE: str

    def check(self, facts: Facts, /) -> Iterable[Finding]:
        """What is wrong or worth saying; nothing when all is well or cannot be known."""


class CheckOutcome(str, Enum):
    PASSED = "passed"
    FOUND = "found"
    LEFT_OUT = "left_out"
    CRASHED = "crashed"


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """`missing` are the facts that were not there."""

    id: str
    outcome: CheckOutcome
    findings: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()


def found(
    id_: str, severity: Severity, summary: str, *, detail: str | None = None, fix: str | None = None
) -> Finding:
    return Finding(id=id_, severity=severity, summary=summary, detail=detail, fix=fix)


def error_or(*, if_planned: bool, otherwise: Severity = Severity.WARNING) -> Severity:
    """An error where a plan depends on it, milder where nobody has said what the machine is for."""
    return Severity.ERROR if if_planned else otherwise


def gpus_named(gpus: Iterable[Gpu | int]) -> str:
    """Name GPUs: "GPU 3" or "GPUs 0-3, 6"; the numbers are NVML's."""
    numbers = sorted({gpu if isinstance(gpu, int) else gpu.index for gpu in gpus})
    return f"GPU{'s' if len(numbers) > 1 else ''} {ranges(numbers)}"


def smi(gpus: Iterable[Gpu], options: str) -> str:
    """The nvidia-smi command with `options` for all of `gpus`; -i takes a list."""
    return f"nvidia-smi -i {','.join(str(index) for index in sorted(gpu.index for gpu in gpus))} {options}"


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as "0-3, 6"."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)


def gb(size_bytes: float) -> str:
    """Decimal gigabytes as people compare them with a product's name."""
    digits = 0 if size_bytes >= _ROUND_FROM_BYTES else 1
    return f"{size_bytes / 1e9:.{digits}f} GB"


def version_key(text: str | None) -> tuple[int, ...]:
    """The numbers in "580.105.08"; empty when unknown. A local part ("+cu130") and letters are left out."""
    if not text:
        return ()
    parts = text.split("+")[0].split(".")
    numbers = []
    for part in parts:
        digits = "".join(letter for letter in part if letter.isdigit())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
