"""Translation: wishes in any release's spelling become the options of one release, with a reason for each change."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dflashctl.core.findings import Finding, Severity
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.equivalents import ABSENCES, EQUIVALENTS, SAME, VALUE_CHANGES
from dflashctl.engines.sglang.suggest import nearest_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.option import Option
    from dflashctl.engines.sglang.catalogue import Catalogue
    from dflashctl.engines.sglang.equivalents import Equivalent, Piece
    from dflashctl.engines.sglang.wish import Wish

_ALGORITHM = "--speculative-algorithm"
# The rules know which release has them, and say so better than a list of choices.
_JUDGED_BY_RULES = ("DFLASH", "DSPARK")
_ABSENCES = {absence.flag: absence for absence in ABSENCES}
_VALUES = {(change.flag, change.value): change for change in VALUE_CHANGES}


@dataclass(frozen=True, kw_only=True)
class Translated:
    """What the release gets, what it does not, and what to tell about it."""

    granted: tuple[Wish, ...]
    dropped: tuple[Wish, ...] = ()
    findings: tuple[Finding, ...] = field(default=())


def translate(wishes: Sequence[Wish], have: Catalogue) -> Translated:
    """The wishes in the spelling of the build `have`; later wishes win over earlier ones of the same option."""
    modern = last_wins(modernised(last_wins(wishes)))
    return _fitted(modern, have)


def modernised(wishes: Sequence[Wish]) -> tuple[Wish, ...]:
    """The wishes in the newest release's preferred spelling, where it has one."""
    current = tuple(wishes)
    for equivalent in EQUIVALENTS:
        current = _replaced(current, equivalent.old, equivalent.new, equivalent)
    return tuple(_preferred(one) for one in current)


def last_wins(wishes: Sequence[Wish]) -> tuple[Wish, ...]:
    """One wish for each option, the last one, at the place of the first."""
    found: dict[str, Wish] = {}
    for one in wishes:
        found[one.flag] = one
    return tuple(found.values())


def _preferred(one: Wish) -> Wish:
    option = catalogue.catalogue(catalogue.newest()).find(one.flag)
    if option is None or option.deprecated or option.strings[0] == one.flag or one.flag.startswith("--no-"):
        return one
    return replace(one, flag=option.strings[0]).because(
        f"{option.strings[0]} is the preferred spelling of {one.flag}"
    )


def _fitted(modern: tuple[Wish, ...], have: Catalogue) -> Translated:
    back = [
        equivalent
        for equivalent in EQUIVALENTS
        if any(not have.good(piece.flag) for piece in equivalent.new)
        and all(have.find(piece.flag) for piece in equivalent.old)
    ]
    # What several old options became goes back to the one that was asked for, else to the first of them.
    current = modern
    for equivalent in back:
        if _asked_so(current, equivalent):
            current = _replaced(current, equivalent.new, equivalent.old, equivalent)
    for equivalent in back:
        current = _replaced(current, equivalent.new, equivalent.old, equivalent)
    current = tuple(_spelled(one, have) for one in current)
    granted: list[Wish] = []
    dropped: list[Wish] = []
    findings: list[Finding] = []
    for one in current:
        kept, finding = _settled(one, have)
        findings += [finding] if finding else []
        (granted if kept else dropped).append(kept or one.because(_reason(finding)))
    return Translated(granted=tuple(granted), dropped=tuple(dropped), findings=tuple(findings))


def _asked_so(wishes: tuple[Wish, ...], equivalent: Equivalent) -> bool:
    """Whether wishes for the new side were asked for in the words of the old one."""
    matched = [one for one in wishes if any(_matches(one, piece) for piece in equivalent.new)]
    asked = {word.partition("=")[0] for one in matched for word in one.asked.split()}
    return bool(matched) and {piece.flag for piece in equivalent.old} <= asked


def _spelled(one: Wish, have: Catalogue) -> Wish:
    """The wish in the build's own spelling, where that is an alias in the newest release."""
    option = catalogue.catalogue(catalogue.newest()).find(one.flag)
    if have.find(one.flag) is not None or option is None:
        return one
    known = [string for string in option.strings if have.find(string) is not None]
    if not known:
        return one
    return replace(one, flag=known[0]).because(f"SGLang {have.release} spells {one.flag} {known[0]}")


def _reason(finding: Finding | None) -> str:
    return finding.summary if finding else ""


def _settled(one: Wish, have: Catalogue) -> tuple[Wish | None, Finding | None]:
    """The wish as the build takes it, or None, with what to tell about it."""
    option = have.find(one.flag)
    if option is None:
        return None, _absent(one, have)
    return _with_known_values(one, option, have)


def _absent(one: Wish, have: Catalogue) -> Finding:
    absence = _ABSENCES.get(one.flag)
    elsewhere = catalogue.releases_with(one.flag)
    if absence is not None:
        summary = f"SGLang {have.release} has no {one.flag} ({catalogue.span(elsewhere)}): {absence.effect}"
        return Finding(id="option_dropped", severity=Severity.WARNING, summary=summary)
    if elsewhere:
        summary = (
            f"SGLang {have.release} has no option {one.flag!r}; releases with it: {catalogue.span(elsewhere)}"
        )
        fix = f"leave it out, or use a release that has it: --engine-version {elsewhere[-1]}"
        return Finding(id="option_not_in_release", severity=Severity.ERROR, summary=summary, fix=fix)
    return unknown_option(one.flag, have)


def unknown_option(flag: str, have: Catalogue) -> Finding:
    """The refusal of an option that no release has, with the nearest names of the build."""
    near = nearest_names(flag, have.by_string)
    return Finding(
        id="option_unknown",
        severity=Severity.ERROR,
        summary=f"SGLang {have.release} has no option {flag!r}",
        fix=f"did you mean {' or '.join(near)}?" if near else "leave it out",
    )


def _with_known_values(one: Wish, option: Option, have: Catalogue) -> tuple[Wish | None, Finding | None]:
    bad = next((value for value in one.values if not option.allows(value)), None)
    if bad is None or (one.flag == _ALGORITHM and bad in _JUDGED_BY_RULES):
        return one, None
    change = _VALUES.get((one.flag, bad))
    if change is None or option.choices is None:
        return None, _bad_value(one, option, bad, have)
    known = _releases_allowing(one.flag, bad)
    summary = (
        f"SGLang {have.release} does not know {one.flag} {bad} ({catalogue.span(known)}): {change.effect}"
    )
    finding = Finding(id="value_replaced", severity=Severity.WARNING, summary=summary)
    if change.to is None:
        return None, finding
    values = tuple(change.to if value == bad else value for value in one.values)
    return replace(one, values=values).because(summary), finding


def _bad_value(one: Wish, option: Option, bad: str, have: Catalogue) -> Finding:
    if option.choices is None:
        summary = f"{one.flag} takes a number ({option.type}), not {bad!r}"
        return Finding(id="value_type", severity=Severity.ERROR, summary=summary)
    known = _releases_allowing(one.flag, bad)
    summary = f"SGLang {have.release} does not know {one.flag} {bad}"
    if known:
        summary += f" (known to {catalogue.span(known)})"
    near = nearest_names(bad, option.choices) or option.choices
    return Finding(
        id="value_unknown",
        severity=Severity.ERROR,
        summary=summary,
        detail=f"it takes: {', '.join(option.choices)}",
        fix=f"use {' or '.join(near[:3])}" + (f", or SGLang {known[-1]}" if known else ""),
    )


def _releases_allowing(flag: str, value: str) -> tuple[str, ...]:
    return catalogue.releases_allowing(flag, value)


def _replaced(
    wishes: tuple[Wish, ...], old: tuple[Piece, ...], new: tuple[Piece, ...], equivalent: Equivalent
) -> tuple[Wish, ...]:
    """The wishes with the pieces `old`, if all are there, replaced by `new` at the place of the first."""
    matched = [next((one for one in reversed(wishes) if _matches(one, piece)), None) for piece in old]
    found = [one for one in matched if one is not None]
    if len(found) != len(old) or not old:
        return wishes
    values = next((one.values for one, piece in zip(found, old, strict=True) if piece.value == SAME), ())
    asked = dict.fromkeys(one.asked for one in found)
    reasons = dict.fromkeys(reason for one in found for reason in one.reasons)
    first = replace(found[0], asked=" ".join(asked), reasons=tuple(reasons))
    made = tuple(
        replace(first, flag=piece.flag, values=_values(piece, values)).because(
            equivalent.reason, equivalent.source
        )
        for piece in new
    )
    place = min(wishes.index(one) for one in found)
    before = [one for one in wishes[:place] if one not in found]
    after = [one for one in wishes[place:] if one not in found]
    return (*before, *made, *after)


def _values(piece: Piece, values: tuple[str, ...]) -> tuple[str, ...]:
    if piece.value is None:
        return ()
    return values if piece.value == SAME else (piece.value,)


def _matches(one: Wish, piece: Piece) -> bool:
    if one.flag != piece.flag:
        return False
    return piece.value is None or piece.value == SAME or one.values == (piece.value,)
