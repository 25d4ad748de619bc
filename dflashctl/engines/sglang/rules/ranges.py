"""Rules about numbers outside their range, for options that no field of the profile holds (core.profile_rules has those)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.findings import Severity
from dflashctl.core.profile_rules import MAX_COUNT, MAX_PORT
from dflashctl.engines.sglang.rules.rule import Rule

if TYPE_CHECKING:
    from dflashctl.engines.sglang.situation import Situation


@dataclass(frozen=True, kw_only=True)
class _Range:
    """The numbers that `flag` may have, both ends included; `least_open` leaves the lower end out."""

    flag: str
    least: float
    most: float = MAX_COUNT
    least_open: bool = False
    source: str = "srt/server_args.py"

    def broken(self, s: Situation) -> bool:
        text = s.value(self.flag)
        if text is None:
            return False
        try:
            number = float(text.rpartition(":")[2])
        except ValueError:
            return False
        return not self.least <= number <= self.most or (self.least_open and number == self.least)

    def rule(self) -> Rule:
        ports = self.most == MAX_PORT
        words = "above 0" if self.least_open else f"{self.least:g} or more"
        return Rule(
            id="port_out_of_range" if ports else "number_out_of_range",
            when=self.broken,
            severity=Severity.ERROR,
            consequence=f"{self.flag}: a port is 1 to {MAX_PORT}"
            if ports
            else f"{self.flag} must be {words}",
            fix=f"give {self.flag} another value, or leave it out",
            source=self.source,
        )


_PORTS = (
    "--nccl-port",
    "--grpc-port",
    "--dist-init-addr",
    "--disaggregation-bootstrap-port",
    "--engine-info-bootstrap-port",
)
_COUNTS = (
    "--nnodes",
    "--gpu-id-step",
    "--dcp-size",
    "--attn-cp-size",
    "--attn-dp-size",
    "--mamba-track-interval",
)
_POOL = "sglang 0.5.23: srt/mem_cache/kv_cache_configurator.py:3392"

RULES: tuple[Rule, ...] = tuple(
    one.rule()
    for one in (
        *(_Range(flag=flag, least=1, most=MAX_PORT) for flag in _PORTS),
        *(_Range(flag=flag, least=1) for flag in _COUNTS),
        _Range(flag="--node-rank", least=0),
        _Range(flag="--base-gpu-id", least=0),
        _Range(flag="--max-mamba-cache-size", least=1, source=_POOL),
        _Range(flag="--mamba-full-memory-ratio", least=0, least_open=True, source=_POOL),
    )
)
