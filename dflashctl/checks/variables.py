"""variables: settings in the server's environment that change what is measured or slow the GPUs' links down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity
from dflashctl.core.simulated import VARIABLE, simulated_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "variables"
NEEDS = ("sglang_plan",)
SOURCE = (
    "SGLang's environ.py offers simulated acceptance; NCCL's documentation lists what its variables turn off"
)
_SLOWER = {
    ("NCCL_P2P_DISABLE", "1"): "no direct GPU-to-GPU copies",
    ("NCCL_NVLS_ENABLE", "0"): "no NVLink multicast",
    ("NCCL_SHM_DISABLE", "1"): "no shared memory",
    ("CUDA_LAUNCH_BLOCKING", "1"): "every kernel is waited for",
}


def check(facts: Facts) -> Iterator[Finding]:
    yield from _simulated(facts)
    variables = facts.variables
    slower = [(name, value, what) for (name, value), what in _SLOWER.items() if variables.get(name) == value]
    if slower and (facts.ranks > 1 or any(name.startswith("CUDA") for name, _, _ in slower)):
        yield found(
            ID,
            Severity.NOTE,
            "the environment slows the engine down: "
            + ", ".join(f"{n}={v} ({what})" for n, v, what in slower),
            fix="unset what is not on purpose",
        )


def _simulated(facts: Facts) -> Iterator[Finding]:
    value = simulated_by(facts.variables)
    if value is None or facts.plan is None or not facts.plan.speculation:
        return
    planned = VARIABLE in dict(facts.plan.env)
    yield found(
        ID,
        Severity.ERROR,
        f"{VARIABLE}={value} makes the engine invent its accept length: every figure would be false",
        fix=f"take {VARIABLE} out of the plan's environment (profile or --set)"
        if planned
        else f"unset {VARIABLE}",
    )
