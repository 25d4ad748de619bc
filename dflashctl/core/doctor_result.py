"""DoctorResult: what doctor answers, for people and for scripts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.check import CheckOutcome, CheckResult

if TYPE_CHECKING:
    from dflashctl.core.deep import DeepFacts
    from dflashctl.core.facts import Facts, PortUse, WeightsOnDisk
    from dflashctl.core.fit import Fit
    from dflashctl.core.machine import Gpu, Machine


@dataclass(frozen=True, kw_only=True)
class DoctorResult:
    """`verdict` is the one sentence; `source` is the saved machine's file, None for this machine.

    `gpus` are the UUIDs that a start would take, without a profile those that were named. `detailed` asks the view for all facts. `unknown` are facts that this machine does not tell.
    """

    verdict: str
    profile: str | None
    source: str | None
    machine: Machine
    gpus: tuple[str, ...]
    fit: Fit | None
    fit_now: Fit | None
    ports: tuple[PortUse, ...]
    weights: tuple[WeightsOnDisk, ...]
    deep: DeepFacts | None
    checks: tuple[CheckResult, ...]
    unknown: tuple[str, ...]
    quick_s: float | None
    saved: str | None = None
    detailed: bool = False

    @property
    def passed(self) -> int:
        return sum(result.outcome is CheckOutcome.PASSED for result in self.checks)

    def to_json(self) -> dict[str, object]:
        """As it is, with the findings left to the envelope."""
        return {
            "verdict": self.verdict,
            "profile": self.profile,
            "source": self.source,
            "gpus": self.gpus,
            "fit": self.fit,
            "fit_now": self.fit_now,
            "ports": self.ports,
            "weights": self.weights,
            "deep": self.deep,
            "checks": tuple({"id": c.id, "outcome": c.outcome, "missing": c.missing} for c in self.checks),
            "unknown": self.unknown,
            "quick_s": self.quick_s,
            "saved": self.saved,
            "machine": self.machine,
        }


@dataclass(frozen=True, kw_only=True)
class DoctorWatch:
    """One look at the GPUs of a running machine; `at_s` is the time since the first look.

    `unreadable` are GPUs that the driver lists and cannot open, with its reason; `problem` is why there is nothing to watch.
    """

    at_s: float
    gpus: tuple[Gpu, ...]
    unreadable: tuple[str, ...] = ()
    problem: str | None = None


def unknown_facts(facts: Facts) -> tuple[str, ...]:
    """What the GPUs and the host did not tell, each named once with the GPUs it concerns."""
    where: dict[str, list[int]] = {}
    for gpu in facts.gpus:
        for fact in gpu.unknown:
            where.setdefault(fact, []).append(gpu.index)
    everywhere = len(facts.gpus)
    named = [
        fact if len(indices) == everywhere else f"{fact} (GPU {', '.join(map(str, indices))})"
        for fact, indices in where.items()
    ]
    host = [] if facts.machine.host is not None or facts.machine.assumed else ["host"]
    return (*named, *host, *facts.machine.unknown)
