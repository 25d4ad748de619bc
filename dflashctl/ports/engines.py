"""EngineProbe: which engine an interpreter or an image has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dflashctl.core.engine import EngineBuild


class EngineProbe(Protocol):
    def find(self, *, python: str) -> EngineBuild | None:
        """The SGLang of interpreter `python`; None when it has none; EngineError when it cannot be run."""
