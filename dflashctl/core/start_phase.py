"""StartPhase: the steps of a start."""

from __future__ import annotations

from enum import Enum


class StartPhase(str, Enum):
    """Steps of a start, in order, as a person follows them."""

    RESOLVE = "resolve"
    LOAD_TARGET = "load_target"
    LOAD_DRAFT = "load_draft"
    ALLOCATE = "allocate"
    CAPTURE = "capture"
    WARM_UP = "warm_up"
    READY = "ready"
