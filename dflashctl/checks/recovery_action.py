"""recovery_action: what the driver itself asks for before a GPU is used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, gpus_named
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "recovery_action"
NEEDS = ("gpus",)
SOURCE = "nvml.h, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"
_WORDS = {
    "gpu_reset": "a GPU reset",
    "node_reboot": "a reboot",
    "drain_p2p": "its peer traffic to be drained",
    "drain_and_reset": "its work drained and a GPU reset",
    "recover_imex_domain": "the IMEX domain to be recovered",
    "bus_reset": "a bus reset",
    "system_reboot": "a reboot",
}


def check(facts: Facts) -> Iterator[Finding]:
    for action, words in _WORDS.items():
        waiting = [gpu for gpu in facts.gpus if gpu.recovery_action == action]
        if waiting:
            yield found(
                ID,
                Severity.ERROR,
                f"the driver asks for {words} before {gpus_named(waiting)} is used again",
                fix="take the work off this machine and do that; dflashctl never resets a GPU itself",
            )
