"""Routine lines: what a server writes of each poll that went well, several a second, and that says nothing of its end."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_POLL = re.compile(
    r'"GET /(?:metrics|health|health_generate|ready|v1/models|v1/loads|get_load|(?:get_)?(?:server|model)_info)/?'
    r'(?:\?\S*)? HTTP/1\.[01]" 200\b'
)


def telling(lines: Sequence[str], count: int) -> tuple[str, ...]:
    """The last `count` lines that are no routine, oldest first."""
    found = islice((line for line in reversed(lines) if not _POLL.search(line)), count)
    return tuple(found)[::-1]
