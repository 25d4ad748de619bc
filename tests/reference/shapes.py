"""Compare the shape of two JSON values: which keys are missing, and where the types differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def differences(recorded: Any, ours: Any, where: str = "") -> Iterator[str]:
    """Yield one line for each key that ``ours`` lacks or has beyond ``recorded``, and for each other type.

    Whole and fractional numbers are one type. Lists are compared by their first elements.
    """
    if kind(recorded) != kind(ours):
        yield f"{where}: {kind(recorded)} became {kind(ours)}"
    elif isinstance(recorded, dict):
        for key in recorded.keys() - ours.keys():
            yield f"{where}.{key}: missing"
        for key in ours.keys() - recorded.keys():
            yield f"{where}.{key}: added"
        for key in recorded.keys() & ours.keys():
            yield from differences(recorded[key], ours[key], f"{where}.{key}")
    elif isinstance(recorded, list) and recorded and ours:
        yield from differences(recorded[0], ours[0], f"{where}[0]")


def kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(type(value).__name__)
    return "number" if isinstance(value, (int, float)) else type(value).__name__
