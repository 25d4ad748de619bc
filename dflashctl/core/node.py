"""Node: a value of a document with its place, so that every problem can name line and column."""

from __future__ import annotations

from dataclasses import dataclass, replace

Scalar = None | bool | int | float | str


@dataclass(frozen=True, kw_only=True)
class Node:
    """A scalar, a sequence or a mapping (keys in order); `where` is "FILE:LINE" or an option."""

    where: str
    scalar: Scalar = None
    items: tuple[Node, ...] | None = None
    fields: tuple[tuple[str, Node], ...] | None = None

    @property
    def kind(self) -> str:
        if self.fields is not None:
            return "a mapping"
        if self.items is not None:
            return "a list"
        if self.scalar is None:
            return "nothing"
        names = {bool: "true/false", int: "a whole number", float: "a number", str: "text"}
        return names[type(self.scalar)]

    def get(self, key: str) -> Node | None:
        return dict(self.fields or ()).get(key)

    def with_field(self, path: tuple[str, ...], value: Node) -> Node:
        """A copy in which the field at `path` is `value`; sections are made on the way."""
        head, rest = path[0], path[1:]
        if rest:
            old = self.get(head)
            inner = old if old is not None and old.fields is not None else Node(where=value.where, fields=())
            value = inner.with_field(rest, value)
        fields = dict(self.fields or ())
        fields[head] = value
        return replace(self, scalar=None, items=None, fields=tuple(fields.items()))
