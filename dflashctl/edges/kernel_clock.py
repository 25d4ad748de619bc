"""Whether the kernel holds its clock synchronised, by adjtimex(2), which changes nothing when asked so."""

from __future__ import annotations

import ctypes

_TIMEX_BYTES = 208
_TIME_ERROR = 5


def clock_synchronised() -> bool | None:
    """False when no time service disciplines the clock; None when the kernel does not say."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    # A zeroed struct timex has modes = 0: read only.
    state = adjtimex(ctypes.create_string_buffer(_TIMEX_BYTES))
    return None if state < 0 else state != _TIME_ERROR
