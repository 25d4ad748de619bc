"""Redact: secrets out of text, by value and by shape, before anything is written."""

from __future__ import annotations

import re

MASK = "<redacted>"
_SHAPES = re.compile(
    r"hf_[A-Za-z0-9]{20,}"
    r"|(?P<name>\b(?:admin_)?api[_-]key['\"]?\s*[=:]\s*)(?P<quote>['\"])(?!None)(?:(?!(?P=quote)).)+(?P=quote)"
    r"|(?P<bearer>\bBearer\s+)[A-Za-z0-9._~+/=-]{8,}",
    re.IGNORECASE,
)


class Redactor:
    """`values` are the secrets known to this process; short ones (under 6 characters) hide by shape only."""

    def __init__(self, values: tuple[str, ...] = ()) -> None:
        known = sorted({v for v in values if len(v) >= 6}, key=len, reverse=True)  # noqa: PLR2004
        self._values = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(MASK, text)
        return _SHAPES.sub(_mask, text)


def _mask(found: re.Match[str]) -> str:
    if found["name"]:
        return f"{found['name']}{found['quote']}{MASK}{found['quote']}"
    return f"{found['bearer']}{MASK}" if found["bearer"] else MASK
