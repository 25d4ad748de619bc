"""EngineProbe: which engine an interpreter or an image has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.core.engine import EngineBuild, FoundEngine


class EngineProbe(Protocol):
    def find(self, *, python: str) -> EngineBuild | None:
        """The engine of interpreter `python`; None when it has none; EngineError when it cannot be run."""

    def find_in_image(self, *, image: str) -> EngineBuild | None:
        """The engine inside a Docker image; None when it has none; Unavailable without Docker or the image."""


class BuildKnowledge(Protocol):
    """How one engine's installed builds are told apart; an engine's `builds` module satisfies it."""

    IDENTIFY: Path
    INTROSPECT: Path

    def found(self, answer: str, python: str | None, /) -> FoundEngine | None:
        """What the script IDENTIFY answered; None when there is no engine; ValueError for anything else."""

    def with_sources(self, dump: str, root: Path | None, /) -> str:
        """The answer of the script INTROSPECT, with what the build's sources tell besides."""

    def with_options(self, build: EngineBuild, dump: str, /) -> EngineBuild:
        """The build with the options in that answer; the build itself when the answer is broken."""
