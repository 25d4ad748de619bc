"""Options as data: from what introspect.py prints, to and from the lines of data/options.json."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from dflashctl.core.option import Option

if TYPE_CHECKING:
    from collections.abc import Mapping

_DEPRECATED_HELP = re.compile(r"^[\[(]?deprecated", re.IGNORECASE)
_NAMED_IN_HELP = re.compile(r"--[a-z0-9-]+(?:=[\w-]+)?")


def to_data(option: Option) -> dict[str, Any]:
    """JSON form without what is usual, for the data file."""
    usual = Option(strings=option.strings, dest=_dest(option.strings[0]))
    names = [f.name for f in dataclasses.fields(Option) if f.name != "strings"]
    data = {n: getattr(option, n) for n in names if getattr(option, n) != getattr(usual, n)}
    return {**data, **({"also": list(option.strings[1:])} if len(option.strings) > 1 else {})}


def from_data(first: str, data: Mapping[str, Any]) -> Option:
    """The inverse of `to_data`."""
    fields = dict(data)
    strings = (first, *fields.pop("also", ()))
    if fields.get("choices") is not None:
        fields["choices"] = tuple(fields["choices"])
    fields.setdefault("dest", _dest(first))
    return Option(strings=strings, **fields)


def from_dump(dump: Mapping[str, Any]) -> Option:
    """An option from one record of introspect.py."""
    help_ = dump.get("help") or ""
    deprecated = dump["action"].startswith("Deprecated") or bool(_DEPRECATED_HELP.match(help_))
    return Option(
        strings=tuple(dump["strings"]),
        dest=dump["dest"],
        nargs=dump["nargs"],
        type=dump["type"],
        choices=tuple(dump["choices"]) if dump["choices"] else None,
        default=dump["default"],
        const=(dump.get("extra") or {}).get("const_value", None if dump["const"] is True else dump["const"]),
        required=dump["required"],
        deprecated=deprecated,
        replacement=_replacement(dump, help_) if deprecated else None,
    )


def _replacement(dump: Mapping[str, Any], help_: str) -> str | None:
    named = (dump.get("extra") or {}).get("new_flag")
    if named:
        return str(named)
    others = [word for word in _NAMED_IN_HELP.findall(help_) if word not in dump["strings"]]
    return others[0] if others else None


def _dest(first: str) -> str:
    return first.lstrip("-").replace("-", "_")
