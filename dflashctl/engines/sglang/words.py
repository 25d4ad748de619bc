"""Raw engine arguments: from words as typed to wishes, as argparse would read them, but saying what it guesses."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.translate import unknown_option
from dflashctl.engines.sglang.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.option import Option
    from dflashctl.engines.sglang.catalogue import Catalogue

_NUMBER = re.compile(r"-\d|-\.\d")


@dataclass(frozen=True, kw_only=True)
class Read:
    """Wishes in the order of the words, findings about words that are none, and words without an option."""

    wishes: tuple[Wish, ...]
    findings: tuple[Finding, ...] = ()
    loose: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _Meant:
    """The option that a typed flag means, its full spelling, and why when it is not as typed."""

    option: Option
    flag: str
    reason: str | None = None


def read_words(words: Sequence[str], have: Catalogue, origin: str) -> Read:
    """The wishes in `words` for the build `have`; unknown and ambiguous options are error findings."""
    wishes: list[Wish] = []
    findings: list[Finding] = []
    loose: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            loose.append(word)
            continue
        typed, equals, inline = word.partition("=")
        meant = _meaning(typed, have)
        if isinstance(meant, Finding):
            findings.append(meant)
            _skip_values(rest)
            continue
        values = (inline,) if equals else _take_values(rest, meant.option)
        asked = " ".join((word, *(() if equals else values)))
        problem = _wrong_count(meant, values, bool(equals))
        if problem:
            findings.append(problem)
            continue
        one = Wish(flag=meant.flag, values=values, origin=origin, asked=asked)
        wishes.append(one.because(meant.reason) if meant.reason else replace(one, asked=one.words))
    return Read(wishes=tuple(wishes), findings=tuple(findings), loose=tuple(loose))


def _meaning(typed: str, have: Catalogue) -> _Meant | Finding:
    exact = have.find(typed)
    if exact is not None:
        return _Meant(option=exact, flag=typed)
    elsewhere = catalogue.releases_with(typed)
    if elsewhere:
        option = catalogue.catalogue(elsewhere[-1]).find(typed)
        assert option is not None  # noqa: S101 - releases_with found it there
        return _Meant(option=option, flag=typed, reason=_ambiguity(typed, have))
    return _abbreviated(typed, have)


def _ambiguity(typed: str, have: Catalogue) -> str | None:
    """What the build itself would make of a spelling that only other releases have."""
    candidates = have.beginning(typed)
    if len(candidates) > 1:
        return f"{typed} alone is ambiguous in SGLang {have.release} ({' or '.join(candidates)}); its former meaning is taken"
    return None


def _abbreviated(typed: str, have: Catalogue) -> _Meant | Finding:
    candidates = have.beginning(typed)
    if len(candidates) == 1:
        option = have.by_string[candidates[0]]
        return _Meant(
            option=option, flag=candidates[0], reason=f"{typed} is an abbreviation of {candidates[0]}"
        )
    if not candidates:
        return _from_any_release(typed, have)
    return Finding(
        id="option_ambiguous",
        severity=Severity.ERROR,
        summary=f"{typed!r} is ambiguous in SGLang {have.release}",
        detail=f"it begins {', '.join(candidates)}",
        fix=f"write the full name: {' or '.join(candidates[:3])}",
    )


def _from_any_release(typed: str, have: Catalogue) -> _Meant | Finding:
    """An abbreviation of a spelling that only other releases have."""
    longer = sorted(s for s in catalogue.all_strings() if s.startswith(typed))
    if len(longer) != 1:
        return unknown_option(typed, have)
    option = catalogue.catalogue(catalogue.releases_with(longer[0])[-1]).find(longer[0])
    assert option is not None  # noqa: S101 - releases_with found it there
    return _Meant(option=option, flag=longer[0], reason=f"{typed} is an abbreviation of {longer[0]}")


def _take_values(rest: list[str], option: Option) -> tuple[str, ...]:
    if option.nargs == 0:
        return ()
    if option.nargs in (None, "?", 1):
        return (rest.pop(0),) if rest and _is_value(rest[0]) else ()
    limit = option.nargs if isinstance(option.nargs, int) else len(rest)
    taken: list[str] = []
    while rest and _is_value(rest[0]) and len(taken) < limit:
        taken.append(rest.pop(0))
    return tuple(taken)


def _skip_values(rest: list[str]) -> None:
    while rest and _is_value(rest[0]):
        rest.pop(0)


def _is_value(word: str) -> bool:
    return not word.startswith("-") or bool(_NUMBER.match(word)) or word == "-"


def _wrong_count(meant: _Meant, values: tuple[str, ...], inline: bool) -> Finding | None:
    option = meant.option
    if option.nargs == 0 and values:
        return _error(
            "option_takes_no_value", f"{meant.flag} is a switch and takes no value, not {values[0]!r}"
        )
    needed = option.nargs if isinstance(option.nargs, int) else 0 if option.nargs in ("?", "*") else 1
    if len(values) < needed and not (inline and needed == 1):
        return _error(
            "option_needs_value", f"{meant.flag} needs {'a value' if needed == 1 else f'{needed} values'}"
        )
    return None


def _error(id_: str, summary: str) -> Finding:
    return Finding(id=id_, severity=Severity.ERROR, summary=summary)
