"""What stands under a run's row wherever it is shown: how its answers ended, its goodput and its doubtful counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dflashctl.core.bench_record import ABOVE_BLOCK
from dflashctl.core.failures import counted, cut_off

if TYPE_CHECKING:
    from collections.abc import Mapping

_DOUBTS = {
    "no_token_count": "have no token count",
    "usage_below_chunks": "have fewer tokens than chunks",
    "usage_differs": "have a final count below the running one",
    "steps_above_tokens": "have more verify steps than tokens",
    ABOVE_BLOCK: "have more tokens than their verify steps can make at this block size",
}


class _Slo(Protocol):
    @property
    def ttft_ms(self) -> float | None: ...
    @property
    def tpot_ms(self) -> float | None: ...
    @property
    def e2e_ms(self) -> float | None: ...


class _Goodput(Protocol):
    @property
    def slo(self) -> _Slo: ...
    @property
    def good(self) -> int: ...
    @property
    def sent(self) -> int: ...
    @property
    def attainment(self) -> float: ...
    @property
    def requests_per_s(self) -> float: ...


class _Run(Protocol):
    """A summary just made or a run read back."""

    @property
    def errors_by_kind(self) -> Mapping[str, int]: ...
    @property
    def errors_told(self) -> Mapping[str, int]: ...
    @property
    def finish_reasons(self) -> Mapping[str, int]: ...
    @property
    def doubts(self) -> Mapping[str, int]: ...
    @property
    def goodput(self) -> _Goodput | None: ...


def notes(run: _Run) -> tuple[str, ...]:
    """Facts that were asked for or that a reader needs, none of them a fault: goodput, and ends other than "stop"."""
    ends = run.finish_reasons
    told = [goodput_told(run.goodput)] if run.goodput is not None else []
    if set(ends) - {"stop", "unknown"}:
        told.append(f"answers ended with {counted(ends)}")
    return tuple(told)


def faults(run: _Run) -> tuple[str, ...]:
    """What makes figures suspect: failed requests, answers that were broken off, counts that contradict themselves."""
    failed = run.errors_told or run.errors_by_kind  # older files have the kinds alone
    told = [f"requests failed: {counted(failed)}"] if failed else []
    if broken := cut_off(run.finish_reasons):
        told.append(f"answers were broken off: {counted(broken)}")
    told += doubts_told(run.doubts)
    return tuple(told)


def doubts_told(doubts: Mapping[str, int]) -> list[str]:
    return [f"{doubt_told(name, count)}: figures made of them are suspect" for name, count in doubts.items()]


def doubt_told(name: str, count: int) -> str:
    return f"{count} answers {_DOUBTS.get(name, name)}"


def goodput_told(goodput: _Goodput) -> str:
    limits = (("TTFT", goodput.slo.ttft_ms), ("TPOT", goodput.slo.tpot_ms), ("E2E", goodput.slo.e2e_ms))
    kept = ", ".join(f"{name} {limit:g} ms" for name, limit in limits if limit is not None)
    return (
        f"goodput: {goodput.good} of {goodput.sent} requests ({goodput.attainment:.1%}) kept {kept}: "
        f"{goodput.requests_per_s:.2f} a second"
    )
