"""Simulated acceptance: SGLang can be told to make its accept lengths up; what shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "SGLANG_SIMULATE_ACC_LEN"
PLAN_FINDING = "accept_simulated"


def simulated_by(environment: Mapping[str, str]) -> str | None:
    """The variable's value among a server's `environment`, None where it simulates nothing.

    SGLang simulates for a length above 0, and takes a text that is no number for its default (srt/environ.py).
    """
    value = environment.get(VARIABLE)
    try:
        return value if value is not None and float(value) > 0 else None
    except ValueError:
        return None


def simulated(server_info: Mapping[str, object]) -> str | None:
    """The value of SGLANG_SIMULATE_ACC_LEN or its option if /server_info shows one; accept lengths are then made up."""
    for key, value in server_info.items():
        if key.lower() in {VARIABLE.lower(), "simulate_acc_len"}:
            return None if _is_off(value) else str(value)
        nested = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
        for item in nested:
            found = simulated(item) if isinstance(item, dict) else None
            if found is not None:
                return found
    return None


def _is_off(value: object) -> bool:
    """Whether the variable's value means that nothing is simulated (SGLang: a length of 0 or less)."""
    if value is None or value == "":
        return True
    try:
        return float(str(value)) <= 0
    except ValueError:
        return False
