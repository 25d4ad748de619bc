"""What the profile commands answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProfileRow:
    """One line of `profile list`; `origin` is here, user, shipped or file."""

    name: str
    summary: str
    engine: str
    target: str
    draft: str | None
    block_size: int | None
    gpus: int
    origin: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ProfileRows:
    profiles: tuple[ProfileRow, ...]


@dataclass(frozen=True, kw_only=True)
class ProfileText:
    name: str
    path: str
    origin: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ProfileVerdict:
    """A profile that is valid."""

    name: str
    path: str


@dataclass(frozen=True, kw_only=True)
class ProfileVerdicts:
    profiles: tuple[ProfileVerdict, ...]
