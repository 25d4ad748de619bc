"""Profile text: fields by path as a YAML file that a person can go on with."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_PLAIN = re.compile(r"[A-Za-z][\w./:@-]*(?: [\w./:@+-]+)*")
_NOT_TEXT = re.compile(r"(?i)true|false|null|yes|no|on|off|y|n")


def nested(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Sections from paths: {"memory.page_size": 64} → {"memory": {"page_size": 64}}."""
    root: dict[str, Any] = {}
    for path, value in fields.items():
        *sections, name = path.split(".")
        place = root
        for section in sections:
            place = place.setdefault(section, {})
        place[name] = value
    return root


def profile_yaml(fields: Mapping[str, Any], comments: Sequence[str] = ()) -> str:
    """The file: comments first, then the sections in the order given."""
    lines = [f"# {_visible(line)}" if line else "#" for comment in comments for line in comment.splitlines()]
    for key, value in nested(fields).items():
        lines += [""] if lines and isinstance(value, (dict, list, tuple)) else []
        lines += _entry(key, value, "")
    return "\n".join(lines) + "\n"


def _visible(line: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in line)


def _entry(key: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield f"{indent}{key}:"
        for name, item in value.items():
            yield from _entry(name, item, indent + "  ")
    elif isinstance(value, (list, tuple)):
        yield f"{indent}{key}:"
        yield from (f"{indent}  - {_scalar(item)}" for item in value)
    else:
        yield f"{indent}{key}: {_scalar(value)}"


def _scalar(value: Any) -> str:
    """Text is quoted unless it can only be text."""
    if isinstance(value, str):
        plain = _PLAIN.fullmatch(value) and not _NOT_TEXT.fullmatch(value) and ": " not in value
        return value if plain and not value.endswith(":") else _quoted(value)
    return json.dumps(value)


def _quoted(text: str) -> str:
    """Text in YAML's double quotes, which can say every character."""
    escaped = {'"': '\\"', "\\": "\\\\"}
    return '"' + "".join(escaped.get(char) or _character(char) for char in text) + '"'


def _character(char: str) -> str:
    return char if char.isprintable() else f"\\U{ord(char):08x}"
