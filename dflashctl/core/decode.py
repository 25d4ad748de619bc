"""Decode: plain JSON back into the frozen dataclasses that report.to_json turned into JSON."""

from __future__ import annotations

import dataclasses
import types
import typing
from enum import Enum
from typing import TypeVar, cast

T = TypeVar("T")
_UNIONS = (typing.Union, types.UnionType)


class DecodeError(ValueError):
    """JSON that does not fit the type; the message names the place."""


def decode(kind: type[T], value: object, *, at: str = "$") -> T:
    """`value` (from json.loads) as a `kind`; unknown keys are ignored, so newer records stay readable."""
    return cast("T", _decode(kind, value, at))


def _decode(kind: object, value: object, at: str) -> object:
    origin = typing.get_origin(kind)
    if origin in _UNIONS:
        return _decode_union(typing.get_args(kind), value, at)
    if origin is tuple:
        return _decode_tuple(typing.get_args(kind), value, at)
    if origin is dict:
        return _decode_dict(typing.get_args(kind)[1], value, at)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _decode_dataclass(kind, value, at)
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError as error:
            raise DecodeError(f"{at}: {value!r} is not one of {[m.value for m in kind]}") from error
    return _decode_scalar(kind, value, at)


def _decode_scalar(kind: object, value: object, at: str) -> object:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    raise DecodeError(f"{at}: {value!r} is not a {getattr(kind, '__name__', kind)}")


def _decode_union(kinds: tuple[object, ...], value: object, at: str) -> object:
    if value is None and type(None) in kinds:
        return None
    (kind,) = (k for k in kinds if k is not type(None))
    return _decode(kind, value, at)


def _decode_tuple(kinds: tuple[object, ...], value: object, at: str) -> object:
    if not isinstance(value, list):
        raise DecodeError(f"{at}: {value!r} is not a list")
    if len(kinds) == 2 and kinds[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...] has two arguments
        kinds = (kinds[0],) * len(value)
    if len(kinds) != len(value):
        raise DecodeError(f"{at}: {len(value)} items instead of {len(kinds)}")
    return tuple(
        _decode(kind, item, f"{at}[{i}]") for i, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _decode_dict(kind: object, value: object, at: str) -> object:
    if not isinstance(value, dict):
        raise DecodeError(f"{at}: {value!r} is not an object")
    return {str(key): _decode(kind, item, f"{at}.{key}") for key, item in value.items()}


def _decode_dataclass(kind: type, value: object, at: str) -> object:
    if not isinstance(value, dict):
        raise DecodeError(f"{at}: {value!r} is not an object")
    hints = typing.get_type_hints(kind)
    given = {
        field.name: _decode(hints[field.name], value[field.name], f"{at}.{field.name}")
        for field in dataclasses.fields(kind)
        if field.name in value
    }
    missing = [f.name for f in dataclasses.fields(kind) if f.name not in given and _required(f)]
    if missing:
        raise DecodeError(f"{at}: {', '.join(missing)} missing")
    return kind(**given)


def _required(field: dataclasses.Field[object]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
