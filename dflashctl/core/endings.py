"""Endings: why a start of an instance ended, as its supervisor wrote it down; what no log shows stands there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.instance import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.instance import JournalEvent

_ENDINGS = (Phase.BACKOFF, Phase.FAILED)


def last_start(events: Sequence[JournalEvent]) -> int:
    """The number of the last start since `up`, counted from 1; 0 when none was ever begun."""
    return next((event.attempt for event in reversed(events) if event.attempt is not None), 0)


def starts_since_up(events: Sequence[JournalEvent]) -> tuple[float, ...]:
    """When each start since the last `up` began, oldest first, in wall-clock seconds."""
    begun: list[float] = []
    for event in reversed(events):
        if event.phase is Phase.STARTING and event.attempt is not None:
            begun.append(event.at_s)
            if event.attempt == 1:
                break
    return tuple(reversed(begun))


def ending_of(events: Sequence[JournalEvent], start: int) -> str | None:
    """Why start number `start` of the last `up` ended in a restart or in failure; None when it did neither."""
    for event in reversed(events):
        if event.attempt is None:
            continue
        if event.attempt == start and event.phase in _ENDINGS:
            return event.text
        if event.attempt < start or (event.attempt, event.phase) == (1, Phase.STARTING):
            return None
    return None
