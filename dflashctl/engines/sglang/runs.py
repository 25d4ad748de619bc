"""Runs of releases: one value per stretch of releases that share it, so that data stays small and diffs stay readable.

A run is `[since, until, value]`. `until` is null for a run that reaches the newest release, so adding a
release that changes nothing changes no line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")
Run = tuple[str, str | None, T]


def number(release: str) -> tuple[int, ...]:
    """The numeric part of a release, for comparing: "0.5.23.post1" → (0, 5, 23)."""
    numbers = []
    for part in release.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def fold(releases: Sequence[str], values: Mapping[str, T]) -> list[Run[T]]:
    """Runs over `releases` (oldest first) of `values` by release; a release without a value ends a run."""
    runs: list[Run[T]] = []
    previous: str | None = None
    for release in releases:
        if release not in values:
            previous = None
            continue
        if previous is not None and runs[-1][2] == values[release]:
            runs[-1] = (runs[-1][0], release, runs[-1][2])
        else:
            runs.append((release, release, values[release]))
        previous = release
    return [(since, None if until == releases[-1] else until, value) for since, until, value in runs]


def unfold(releases: Sequence[str], runs: Sequence[Run[T]]) -> dict[str, T]:
    """The value of each release, as `fold` was given them."""
    found: dict[str, T] = {}
    for since, until, value in runs:
        first = releases.index(since)
        last = releases.index(until) if until else len(releases) - 1
        found.update(dict.fromkeys(releases[first : last + 1], value))
    return found


def within(release: str, since: str | None, until: str | None) -> bool:
    """Whether `release` lies in since..until, both included; None leaves that side open."""
    at = number(release)
    return (since is None or number(since) <= at) and (until is None or at <= number(until))
