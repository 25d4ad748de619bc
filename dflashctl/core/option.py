"""Option: one command-line option of an engine, as its own parser describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Option:
    """`strings` are all spellings, the parser's first one first; `default` and `const` are JSON-like.

    `nargs` is None for one value, 0 for a switch, else argparse's own ("+", "*", "?", a number).
    `replacement` is what the parser itself names instead of a deprecated option: "--new", "--new=value" or a
    pattern such as "--cuda-graph-backend-{decode,prefill}=disabled".
    """

    strings: tuple[str, ...]
    dest: str
    nargs: str | int | None = None
    type: str | None = None
    choices: tuple[str, ...] | None = None
    default: object = None
    const: object = None
    required: bool = False
    deprecated: bool = False
    replacement: str | None = None

    @property
    def is_switch(self) -> bool:
        return self.nargs == 0

    @property
    def takes_many(self) -> bool:
        return self.nargs in ("+", "*") or (isinstance(self.nargs, int) and self.nargs > 1)

    def allows(self, value: str) -> bool:
        """Whether the parser takes `value`, judged by its choices and its plain type."""
        if self.choices is not None:
            return value in self.choices
        if self.type == "int":
            return _parses(int, value)
        return _parses(float, value) if self.type == "float" else True


def _parses(kind: type[int | float], value: str) -> bool:
    try:
        kind(value)
    except ValueError:
        return False
    return True
