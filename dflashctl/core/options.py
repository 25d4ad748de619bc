"""What the command line can say about a plan, shared by up, profile explain, doctor and render."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterator


def overrides(sets: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    """`--set section.key=value` words as (path, value, origin); UsageProblem for one of another form."""
    found = []
    for word in sets:
        path, equals, value = word.partition("=")
        if not equals or not path or "" in path.split("."):
            raise UsageProblem(
                f"--set {word!r} is not of the form section.key=value",
                hint="--set memory.static_fraction=0.85",
            )
        found.append((path, value, f"--set {word}"))
    return tuple(found)


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """`profile` is empty where none was named (only doctor does without). `sets` are "section.key=value" words; the others are None or False when not given."""

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

    def line(self, command: str, *, without: tuple[str, ...] = ()) -> str:
        """`dflashctl COMMAND` with this request as a shell reads it, so that it means the same plan again."""
        words = ["dflashctl", *command.split(), *([self.profile] if self.profile else [])]
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("profile", "raw_args", *without) or value == field.default:
                continue
            option = "--set" if field.name == "sets" else f"--{field.name.replace('_', '-')}"
            for one in value if isinstance(value, tuple) else (value,):
                words += [option] if one is True else [option, str(one)]
        words += ["--", *self.raw_args] if self.raw_args else []
        return " ".join(map(shlex.quote, words))

    def overrides(self) -> Iterator[tuple[str, str, str]]:
        """Profile path, value as YAML, and the option that said so; later ones win."""
        yield from overrides(self.sets)
        named = (
            ("speculative.block_size", self.block_size, "--block-size"),
            ("speculative.draft_window_size", self.window_size, "--window-size"),
            ("server.host", None if self.host is None else json.dumps(self.host), "--host"),
            ("server.port", self.port, "--port"),
        )
        for path, number, option in named:
            if number is not None:
                yield path, str(number), option
