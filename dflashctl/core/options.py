"""What the command line can say about a plan, shared by up, profile explain, doctor and render."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """`sets` are "section.key=value" words; the others are None or False when not given."""

    profile: str
    sets: tuple[str, ...] = ()
    block_size: int | None = None
    window_size: int | None = None
    gpus: str | None = None
    host: str | None = None
    port: int | None = None
    engine_version: str | None = None
    python: str | None = None
    name: str | None = None
    runtime: str = "process"
    image: str | None = None
    offline: bool = False
    dry_run: bool = False
    machine: str | None = None
    skip_doctor: bool = False
    skip_fetch: bool = False
    raw_args: tuple[str, ...] = ()

    def overrides(self) -> Iterator[tuple[str, str, str]]:
        """Profile path, value as YAML, and the option that said so; later ones win."""
        for word in self.sets:
            path, _, value = word.partition("=")
            yield path, value, f"--set {word}"
        named = (
            ("speculative.block_size", self.block_size, "--block-size"),
            ("speculative.draft_window_size", self.window_size, "--window-size"),
            ("server.host", self.host, "--host"),
            ("server.port", self.port, "--port"),
        )
        for path, number, option in named:
            if number is not None:
                yield path, str(number), option
