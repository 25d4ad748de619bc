"""GPU health: what about one GPU forbids its use, and what speaks against it while there are others.

The checks say these things of the GPUs that a plan takes; placement chooses by them, so that it takes others first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.xid_codes import CONTAINED, OF_FABRIC, SEVERE

if TYPE_CHECKING:
    from dflashctl.core.machine import Gpu

MILD_TROUBLES = frozenset({"degraded_bandwidth", "route_recovery_in_progress", "access_timeout_recovery"})
SLOWED = {
    "hw_slowdown": "a hardware slowdown",
    "hw_thermal": "heat (hardware)",
    "sw_thermal": "heat",
    "hw_power_brake": "the power supply's brake",
}


def is_unusable(gpu: Gpu) -> bool:
    """A server on this GPU would fail, hang or be wrong."""
    xids, fabric, rows = set(gpu.xids or ()), gpu.fabric, gpu.row_remap
    return any(
        (
            gpu.recovery_action not in {None, "none"},
            gpu.compute_mode == "prohibited",
            xids & OF_FABRIC.keys(),
            xids & SEVERE.keys() and not is_cleared(gpu),
            rows is not None and rows.failed,
            fabric is not None
            and fabric.supported
            and (
                (fabric.state, fabric.status) != ("completed", "success")
                or set(fabric.troubles or ()) - MILD_TROUBLES
            ),
        )
    )


def needs_care(gpu: Gpu) -> bool:
    """It serves, but slower or at risk."""
    fabric, rows = gpu.fabric, gpu.row_remap
    return any(
        (
            (gpu.compute_mode or "").startswith("exclusive"),
            set(gpu.xids or ()) & (SEVERE.keys() | CONTAINED.keys()),
            rows is not None and rows.pending,
            gpu.retired_pages_pending,
            gpu.ecc_uncorrected_volatile,
            set(gpu.throttle_reasons or ()) & SLOWED.keys(),
            fabric is not None and fabric.supported and (fabric.troubles or gpu.nvlinks_down),
        )
    )


def is_cleared(gpu: Gpu) -> bool:
    """A driver that tells the recovery action has the last word on all errors but those of the fabric."""
    return gpu.recovery_action == "none"
