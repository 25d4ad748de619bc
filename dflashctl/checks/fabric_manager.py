"""fabric_manager: the service that joins the GPUs of an NVSwitch board, and its version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "fabric_manager"
NEEDS = ("gpus", "host")
SOURCE = (
    "hiyouga/LlamaFactory#8968: 8x B200, error 802 with a fabric manager of another version than the driver; "
    "siderolabs/extensions#893: B200 and B300 also need the NVLink subnet manager"
)
_NVLINK_5 = (10, 0)


def check(facts: Facts) -> Iterator[Finding]:
    """The GPUs' own registration has the last word: where it is complete, a stopped service is only worth a note."""
    manager = facts.host.fabric_manager if facts.host else None
    boards = [gpu for gpu in facts.machine.gpus if gpu.fabric and gpu.fabric.supported]
    if manager is None or not boards or manager.running is None:
        return
    registered = all(gpu.fabric and gpu.fabric.state == "completed" for gpu in boards)
    severity = Severity.NOTE if registered else Severity.ERROR
    driver = facts.machine.driver_version
    if not manager.running:
        yield found(
            ID,
            severity,
            "the fabric manager does not run, and this board has NVSwitches",
            fix=f"install nvidia-fabricmanager {driver or ''} and start it: sudo systemctl enable --now nvidia-fabricmanager",
        )
    elif manager.version and driver and manager.version != driver:
        yield found(
            ID,
            Severity.WARNING if registered else Severity.ERROR,
            f"the fabric manager is {manager.version}, the driver {driver}: they must be the same",
            fix=f"install nvidia-fabricmanager {driver} and restart it; hold both packages together",
        )
    newest = max(gpu.compute_capability or (0, 0) for gpu in boards)
    if manager.running and manager.nvlsm_running is False and newest >= _NVLINK_5 and not registered:
        yield found(
            ID,
            Severity.ERROR,
            "the NVLink subnet manager (nvlsm) does not run, without which this board's fabric cannot register",
            fix="install the nvlsm package of the driver's repository and restart the fabric manager",
        )
