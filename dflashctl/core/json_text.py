"""JSON that others wrote: whatever is wrong with it is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def json_loads(text: str | bytes | bytearray) -> Any:
    """As `json.loads`, which lets nesting beyond the interpreter's stack escape as a RecursionError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
