"""gpus_visible: what CUDA_VISIBLE_DEVICES does to an engine started here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity
from dflashctl.core.visibility import visibility

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "gpus_visible"
NEEDS = ()
SOURCE = (
    "CUDA programming guide, CUDA_VISIBLE_DEVICES; vllm-project/vllm#41848: engines read MIG entries as numbers; "
    "THUDM/slime#1326: physical numbers after remapping"
)
_VARIABLE = "CUDA_VISIBLE_DEVICES"


def check(facts: Facts) -> Iterator[Finding]:
    value, gpus = facts.machine.visible_devices, facts.machine.gpus
    if value is None or not gpus or (facts.profile is not None and not facts.needs_gpus):
        return
    seen = visibility(value, gpus)
    if seen.repeated is not None:
        yield found(
            ID,
            Severity.ERROR,
            f"{_VARIABLE}={value!r} names {seen.repeated} twice, and CUDA then shows no GPU",
            fix=f"name each GPU once, or unset {_VARIABLE}",
        )
    elif seen.ignored is not None:
        yield found(
            ID,
            Severity.WARNING if seen.indices or seen.mig else Severity.ERROR,
            f"{_VARIABLE}={value!r}: CUDA ignores everything from {seen.ignored!r} on, which names no GPU here",
            fix=f"correct or unset {_VARIABLE}; GPUs here: 0-{len(gpus) - 1}",
        )
    if seen.mig:
        yield found(
            ID,
            Severity.ERROR if facts.needs_gpus else Severity.WARNING,
            f"{_VARIABLE} names MIG instances, which SGLang cannot use for a server",
            detail=", ".join(seen.mig),
            fix="turn MIG off for these GPUs, or name whole GPUs",
        )
    if seen.by_index and len({gpu.name for gpu in gpus}) > 1:
        yield found(
            ID,
            Severity.NOTE,
            f"{_VARIABLE} names GPUs by number on a machine with different GPUs, where CUDA numbers the fastest first",
            fix=f"name them by UUID, or set CUDA_DEVICE_ORDER=PCI_BUS_ID beside {_VARIABLE}",
        )
