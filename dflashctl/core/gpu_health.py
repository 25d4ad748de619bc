"""GPU health: what about one GPU forbids its use, and what speaks against it while there are others.

The checks say these things of the GPUs that a plan takes; placement chooses by them, so that it takes others first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.machine import Gpu

# Errors of the NVLink fabric, which nothing but a reset or reboot clears and no other register shows.
FABRIC_XIDS = {
    74: "NVLink error",
    144: "NVLink SAW error",
    145: "NVLink RLW error",
    146: "NVLink TLW error",
    147: "NVLink TREX error",
    148: "NVLink NVLPW error",
    149: "NVLink NETIR error",
    150: "NVLink MSE error",
}
SEVERE_XIDS = {
    48: "double-bit ECC error",
    62: "microcontroller halted",
    64: "row remapping failed",
    79: "GPU fell off the bus",
    95: "uncontained memory error",
    109: "context switch timeout",
    119: "GSP does not answer",
    120: "GSP error",
    136: "link training failed",
    140: "unrecovered memory error",
    143: "GPU initialisation failed",
}
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
            xids & FABRIC_XIDS.keys(),
            xids & SEVERE_XIDS.keys() and not is_cleared(gpu),
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
            set(gpu.xids or ()) & SEVERE_XIDS.keys(),
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
