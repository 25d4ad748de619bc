"""variables: settings in the environment that change what is measured or slow the GPUs' links down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "variables"
NEEDS = ("host", "sglang_plan")
SOURCE = (
    "SGLang's environ.py offers simulated acceptance; NCCL's documentation lists what its variables turn off"
)
_SIMULATED = "SGLANG_SIMULATE_ACC_LEN"
_SLOWER = {
    ("NCCL_P2P_DISABLE", "1"): "no direct GPU-to-GPU copies",
    ("NCCL_NVLS_ENABLE", "0"): "no NVLink multicast",
    ("NCCL_SHM_DISABLE", "1"): "no shared memory",
    ("CUDA_LAUNCH_BLOCKING", "1"): "every kernel is waited for",
}


def check(facts: Facts) -> Iterator[Finding]:
    set_here = dict(facts.host.engine_variables) if facts.host else {}
    simulated = set_here.get(_SIMULATED)
    if simulated and _positive(simulated):
        yield found(
            ID,
            Severity.ERROR,
            f"{_SIMULATED}={simulated} makes the engine invent its accept length: every figure would be false",
            fix=f"unset {_SIMULATED}",
        )
    slower = [(name, value, what) for (name, value), what in _SLOWER.items() if set_here.get(name) == value]
    if slower and (facts.ranks > 1 or any(name.startswith("CUDA") for name, _, _ in slower)):
        yield found(
            ID,
            Severity.NOTE,
            "the environment slows the engine down: "
            + ", ".join(f"{n}={v} ({what})" for n, v, what in slower),
            fix="unset what is not on purpose",
        )


def _positive(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False
