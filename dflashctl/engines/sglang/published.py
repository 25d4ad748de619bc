"""What a release makes of a published launch command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.environment import fit_environment
from dflashctl.engines.sglang.translate import translate
from dflashctl.engines.sglang.wish import translations
from dflashctl.engines.sglang.words import read_words

if TYPE_CHECKING:
    from dflashctl.core.engine import Translation

_VARIABLE = re.compile(r"([A-Z_][A-Z0-9_]*)=(\S*)")


def published(command: str, release: str, /) -> tuple[Translation, ...]:
    """Its options and variables that the release spells otherwise or does not have.

    `command` is as profiles keep it: variables, the program, then options without shell quoting. A pasted command of any
    form is `profile new`'s work, whose reader costs every plan 10 ms of imports.
    """
    have = catalogue.catalogue(catalogue.nearest(release))
    words = command.split()
    options = words[next((n for n, word in enumerate(words) if word.startswith("--")), len(words)) :]
    found = (_VARIABLE.fullmatch(word) for word in words[: len(words) - len(options)])
    environment = fit_environment({m[1]: m[2] for m in found if m}, have.release, known=True)
    translated = translate(
        (*read_words(options, have, "the published command").wishes, *environment.wishes), have
    )
    return (*translations(translated.granted, translated.dropped), *environment.translations)
