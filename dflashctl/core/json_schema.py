"""JSON Schema of a profile, for editors, made from the dataclasses that the loader uses."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any

from dflashctl.core.profile import Profile

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def profile_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) of a profile file; `name` is left out, since the file's name gives it."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dflashctl profile",
        **_object(Profile, without=("name",)),
    }


def _object(cls: type[Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    fields = [f for f in dataclasses.fields(cls) if f.name not in without]
    required = [
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {f.name: _value(hints[f.name]) for f in fields},
    }
    return {**schema, "required": required} if required else schema


def _value(hint: Any) -> dict[str, Any]:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_value(next(a for a in args if a is not type(None))), {"type": "null"}]}
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _object(hint)
    if origin is tuple:
        return {"type": "array", "items": _value(args[0])}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}
    return {"type": _TYPES[hint]}
