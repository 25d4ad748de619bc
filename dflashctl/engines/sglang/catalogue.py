"""Catalogue: what each SGLang release's command line, environment and models are, from the data files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.engines.sglang.options import from_data
from dflashctl.engines.sglang.runs import number

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dflashctl.core.option import Option

Runs = list[tuple[str, str | None, Any]]


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The command line of one build: `options` in its parser's order of names; `release` names its knowledge."""

    release: str
    options: tuple[Option, ...]

    @cached_property
    def by_string(self) -> Mapping[str, Option]:
        """Each spelling → its option."""
        return {string: option for option in self.options for string in option.strings}

    def find(self, string: str) -> Option | None:
        """The option with exactly that spelling."""
        return self.by_string.get(string)

    def good(self, string: str) -> bool:
        """Whether the build has that option in good standing."""
        option = self.find(string)
        return option is not None and not option.deprecated

    def beginning(self, prefix: str) -> tuple[str, ...]:
        """Spellings that begin with `prefix`, as argparse's abbreviations do; one for each option."""
        seen: dict[int, str] = {}
        for string, option in self.by_string.items():
            if string.startswith(prefix):
                seen.setdefault(id(option), string)
        return tuple(sorted(seen.values()))


@cache
def _data(name: str) -> Mapping[str, Any]:
    text = (Path(__file__).parent / "data" / f"{name}.json").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = json.loads(text)
    return loaded


@lru_cache(maxsize=1)
def releases() -> tuple[str, ...]:
    """The releases that are known, oldest first."""
    return tuple(sorted(_data("releases"), key=number))


def parser_hash(release: str) -> str | None:
    """Hash of the sources that make the release's command line, as identify.py computes it."""
    found: str | None = _data("releases").get(release, {}).get("parser")
    return found


def newest() -> str:
    return releases()[-1]


def nearest(release: str) -> str:
    """The known release to judge `release` by: itself, else the newest one before it, else the oldest."""
    earlier = [known for known in releases() if number(known) <= number(release)]
    return earlier[-1] if earlier else releases()[0]


@lru_cache(maxsize=4)
def catalogue(release: str) -> Catalogue:
    """The catalogue of a known release."""
    found = ((name, _at(runs, release)) for name, runs in _data("options").items())
    return Catalogue(
        release=release, options=tuple(from_data(name, value) for name, value in found if value is not None)
    )


def of_build(release: str, options: Iterable[Option] | None) -> Catalogue:
    """The catalogue of a build: its own options when it was introspected, else those of the nearest release."""
    known = nearest(release)
    return Catalogue(release=known, options=tuple(options)) if options is not None else catalogue(known)


def releases_with(string: str) -> tuple[str, ...]:
    """The releases whose parser takes that exact spelling, oldest first."""
    runs = [
        run
        for name, runs in _data("options").items()
        for run in runs
        if string == name or string in run[2].get("also", ())
    ]
    return _covered(runs)


@lru_cache(maxsize=1)
def all_strings() -> frozenset[str]:
    """Every spelling of every release."""
    names = set(_data("options"))
    for runs in _data("options").values():
        names.update(*(value.get("also", ()) for _, _, value in runs))
    return frozenset(names)


def help_of(string: str) -> str | None:
    """First sentence of the parser's own help for that option."""
    text: str | None = _data("help").get(string)
    return text


def environment_releases(name: str) -> tuple[str, ...]:
    """The releases that read the environment variable `name`, oldest first; empty for none."""
    return _covered(_data("environment").get(name, []))


def environment_names() -> frozenset[str]:
    """Every SGLANG_* variable that any release reads."""
    return frozenset(_data("environment"))


def capture_hooks(architecture: str, release: str) -> tuple[str, ...] | None:
    """How a target class can hand its hidden states to a draft ("dflash", "dspark"); None: no such class."""
    hooks = _at(_data("models").get(architecture, []), release)
    return None if hooks is None else tuple(hooks)


def releases_with_hook(architecture: str, kind: str = "dflash") -> tuple[str, ...]:
    """The releases in which the target class has that hook."""
    return tuple(r for r in releases() if kind in (capture_hooks(architecture, r) or ()))


def has_mark(literal: str, release: str) -> bool:
    """Whether the sources of the release contain that literal of marks.json."""
    return _at(_data("marks").get(literal, []), release) is not None


def span(found: tuple[str, ...]) -> str:
    """Releases in words: "0.5.12 to 0.5.19", "0.5.20 and later", "no release"."""
    if not found:
        return "no release"
    if found[-1] == newest():
        return f"{found[0]} and later" if len(found) > 1 else found[0]
    return f"{found[0]} to {found[-1]}" if len(found) > 1 else found[0]


@lru_cache(maxsize=1)
def _position() -> Mapping[str | None, int]:
    places: dict[str | None, int] = {release: place for place, release in enumerate(releases())}
    return {**places, None: len(places)}


def _at(runs: Runs, release: str) -> Any:
    place = _position()
    at = place[release]
    for since, until, value in runs:
        if place[since] <= at <= place[until]:
            return value
    return None


def _covered(runs: Runs) -> tuple[str, ...]:
    return tuple(r for r in releases() if _at(runs, r) is not None)


def releases_allowing(flag: str, value: str) -> tuple[str, ...]:
    """The releases whose option `flag` takes `value`; empty when some release does not list what it takes."""
    runs = _data("options").get(flag, [])
    if any(run[2].get("choices") is None for run in runs):
        return ()
    return _covered([run for run in runs if value in (run[2].get("choices") or ())])


def releases_with_class(architecture: str) -> tuple[str, ...]:
    """The releases that have a model class of that name."""
    return _covered(_data("models").get(architecture, []))
