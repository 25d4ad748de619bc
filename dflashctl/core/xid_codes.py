"""Xid codes in words, by what they ask for.

Source: NVIDIA's Xid catalogue, https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html.
"""

from __future__ import annotations

# Errors of the NVLink fabric, which nothing but a reset or reboot clears and no other register shows.
OF_FABRIC = {
    74: "NVLink error",
    144: "NVLink SAW error",
    145: "NVLink RLW error",
    146: "NVLink TLW error",
    147: "NVLink TREX error",
    148: "NVLink NVLPW error",
    149: "NVLink NETIR error",
    150: "NVLink MSE error",
}
SEVERE = {
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
# The process that used the memory is ended, the others go on.
CONTAINED = {94: "contained memory error"}
OF_PROGRAMS = {
    13: "exception in a kernel",
    31: "memory page fault",
    43: "process stopped",
    45: "process ended early",
}
# What the driver still wants done after these is the recovery action's matter, which is judged by itself.
_OTHERS = {
    32: "corrupted push buffer",
    46: "GPU stopped processing",
    61: "microcontroller breakpoint",
    63: "row remapped",
    66: "illegal access by the driver",
    67: "illegal access by the driver",
    69: "class error of the graphics engine",
    80: "corrupted data sent to the GPU",
    92: "high rate of single-bit ECC errors",
    93: "InfoROM wear limit",
    106: "test message",
    107: "test message",
    110: "security fault",
    121: "C2C link error",
    137: "NVLink privilege error",
    141: "CUDA fast path error",
    151: "key rotation error",
    154: "recovery action changed",
    155: "NVLink software-defined error",
    156: "resource retired",
    157: "resource could not be retired",
    158: "fatal timeout",
    160: "channel retired",
    161: "channel could not be retired",
    171: "uncorrectable DRAM error",
    172: "uncorrectable SRAM error",
}
_WORDS = {**OF_FABRIC, **SEVERE, **CONTAINED, **OF_PROGRAMS, **_OTHERS}


def xid_named(code: int) -> str:
    """A code as "Xid 79 (GPU fell off the bus)"; the number alone where it is not known here."""
    words = _WORDS.get(code)
    return f"Xid {code} ({words})" if words else f"Xid {code}"
