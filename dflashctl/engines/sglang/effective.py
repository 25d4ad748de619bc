"""Effective profile: the profile as its raw arguments really make it, for whoever reads port, name or block from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.intent import BY_FLAG, with_values
from dflashctl.engines.sglang.translate import modernised
from dflashctl.engines.sglang.words import read_words

if TYPE_CHECKING:
    from dflashctl.core.engine import EngineBuild
    from dflashctl.core.profile import Profile
    from dflashctl.engines.sglang.wish import Wish


def effective(profile: Profile, raw_args: tuple[str, ...], build: EngineBuild, /) -> Profile:
    """The profile with what `extra_args` and the raw arguments set of it; words that cannot be read change nothing."""
    have = catalogue.of_build(build.release, build.options)
    words = (*profile.extra_args, *raw_args)
    values: dict[str, object] = {}
    for one in modernised(read_words(words, have, "").wishes):
        part = BY_FLAG.get(one.flag)
        if part is not None:
            values.update(_value(part.path, one, switch=part.switch, kind=part.kind))
    return with_values(profile, values)


def _value(path: str, one: Wish, *, switch: bool, kind: type[str | int | float]) -> dict[str, object]:
    if switch:
        return {path: True}
    try:
        return {path: kind(one.values[0])} if one.values else {}
    except ValueError:
        return {}
