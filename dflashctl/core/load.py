"""Strict loading: a Node into nested frozen dataclasses, every problem collected with its place."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar

if typing.TYPE_CHECKING:
    from dflashctl.core.node import Node

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """`where` is file and line, `path` the field ("memory.static_fraction")."""

    where: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.where}: {self.path}: {self.text}" if self.path else f"{self.where}: {self.text}"


class _Bad:
    """Stands for a value that a problem was recorded for."""


_BAD = _Bad()


def load(
    node: Node, cls: type[T], *, extra: Mapping[str, object] | None = None
) -> tuple[T | None, tuple[Problem, ...]]:
    """An instance of dataclass `cls` and all problems in it.

    Fields with problems take their defaults (choices the first one), so that rules over the whole can still be judged and every problem
    is told at once; the instance is None where a field without default is bad or missing. `extra` are fields that
    do not come from the document (they may not be given there).
    """
    problems: list[Problem] = []
    value = _dataclass(node, cls, "", problems, dict(extra or {}))
    return (None if value is _BAD else value), tuple(problems)


def _dataclass(
    node: Node, cls: type[Any], path: str, problems: list[Problem], extra: dict[str, object]
) -> Any:
    if node.fields is None:
        problems.append(
            Problem(where=node.where, path=path, text=f"must be a mapping of fields, is {node.kind}")
        )
        return _BAD
    hints = typing.get_type_hints(cls)
    known = {f.name: f for f in dataclasses.fields(cls) if f.name not in extra}
    values = dict(extra)
    for key, child in node.fields:
        if key not in known:
            problems.append(_unknown(child, key, path, tuple(known)))
            continue
        value = _value(child, hints[key], _join(path, key), problems)
        if value is not _BAD:
            values[key] = value
    return cls(**values) if _complete(node, known, values, path, problems) else _BAD


def _complete(
    node: Node,
    known: dict[str, dataclasses.Field[Any]],
    values: dict[str, object],
    path: str,
    problems: list[Problem],
) -> bool:
    given = {key for key, _ in node.fields or ()}
    complete = True
    for name, field in known.items():
        optional = (
            field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
        )
        if optional or name in values:
            continue
        complete = False
        if name not in given:
            problems.append(Problem(where=node.where, path=_join(path, name), text="is missing"))
    return complete


def _unknown(node: Node, key: str, path: str, known: tuple[str, ...]) -> Problem:
    near = get_close_matches(key, known, n=1, cutoff=0.5)
    advice = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
    return Problem(where=node.where, path=_join(path, key), text=f"unknown field; {advice}")


def _value(node: Node, hint: Any, path: str, problems: list[Problem]) -> Any:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if node.kind == "nothing":
            return None
        return _value(node, next(a for a in args if a is not type(None)), path, problems)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(node, hint, path, problems, {})
    if origin is tuple:
        return _tuple(node, args[0], path, problems)
    if origin is Mapping or hint is Mapping:
        return _mapping(node, path, problems)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _enum(node, hint, path, problems)
    return _scalar(node, hint, path, problems)


def _tuple(node: Node, item: Any, path: str, problems: list[Problem]) -> Any:
    if node.items is None:
        problems.append(Problem(where=node.where, path=path, text=f"must be a list, is {node.kind}"))
        return _BAD
    values = [_value(child, item, f"{path}[{i}]", problems) for i, child in enumerate(node.items)]
    return tuple(value for value in values if value is not _BAD)


def _mapping(node: Node, path: str, problems: list[Problem]) -> Any:
    if node.fields is None:
        problems.append(
            Problem(where=node.where, path=path, text=f"must be a mapping of names to text, is {node.kind}")
        )
        return _BAD
    return MappingProxyType({key: _text(child, _join(path, key), problems) for key, child in node.fields})


def _text(node: Node, path: str, problems: list[Problem]) -> str:
    if isinstance(node.scalar, bool) or node.scalar is None or isinstance(node.scalar, float):
        problems.append(
            Problem(where=node.where, path=path, text=f"must be text, is {node.kind}; put it in quotes")
        )
        return ""
    return str(node.scalar)


def _enum(node: Node, hint: type[Enum], path: str, problems: list[Problem]) -> Enum:
    values = [str(member.value) for member in hint]
    if node.scalar in values:
        return hint(node.scalar)
    near = get_close_matches(str(node.scalar), values, n=1)
    advice = f"did you mean {near[0]!r}?" if near else f"one of {', '.join(values)}"
    problems.append(Problem(where=node.where, path=path, text=f"{node.scalar!r} is not allowed; {advice}"))
    return next(iter(hint))


_NAMES = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}


def _scalar(node: Node, hint: Any, path: str, problems: list[Problem]) -> Any:
    value = node.scalar
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is hint:
        return value
    shown = f"{node.kind} ({value!r})" if value is not None else node.kind
    problems.append(Problem(where=node.where, path=path, text=f"must be {_NAMES[hint]}, is {shown}"))
    return _BAD


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
