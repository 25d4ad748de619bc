"""Wish: one engine argument on its way from what was asked to what the release gets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dflashctl.core.engine import Argument, Translation


@dataclass(frozen=True, kw_only=True)
class Wish:
    """`asked` is the text as it was given, `reasons` what was changed about it so far and why."""

    flag: str
    values: tuple[str, ...] = ()
    origin: str = ""
    why: str | None = None
    asked: str = ""
    reasons: tuple[str, ...] = ()
    source: str | None = None

    @property
    def words(self) -> str:
        return " ".join((self.flag, *self.values))

    def because(self, reason: str, source: str | None = None) -> Wish:
        """The same wish with one more reason."""
        return replace(self, reasons=(*self.reasons, reason), source=source or self.source)

    def argument(self) -> Argument:
        """What is shown for it: the reason of a change, else why the profile wants it."""
        return Argument(
            flag=self.flag,
            values=self.values,
            origin=self.origin,
            why="; ".join(self.reasons) if self.reasons and self.asked != self.words else self.why,
        )


def wish(flag: str, *values: str, origin: str = "", why: str | None = None) -> Wish:
    """A wish as it was asked."""
    return Wish(flag=flag, values=values, origin=origin, why=why, asked=" ".join((flag, *values)))


def translations(granted: tuple[Wish, ...], dropped: tuple[Wish, ...]) -> tuple[Translation, ...]:
    """What changed between asking and granting; wishes that one asked text became are shown together."""
    groups: dict[str, list[Wish]] = {}
    for one in granted:
        groups.setdefault(one.asked, []).append(one)
    changed = [
        _translation(asked, " ".join(one.words for one in group), group[0])
        for asked, group in groups.items()
        if asked != " ".join(one.words for one in group)
    ]
    return (*changed, *(_translation(one.asked, "", one) for one in dropped))


def _translation(asked: str, to: str, one: Wish) -> Translation:
    return Translation(from_=asked, to=to, reason="; ".join(one.reasons), source=one.source)
