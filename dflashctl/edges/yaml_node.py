"""YAML text into Nodes with line numbers; anchors, duplicate keys, custom tags and huge files are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from dflashctl.core.errors import ProfileError
from dflashctl.core.node import Node, Scalar

if TYPE_CHECKING:
    from collections.abc import Hashable

MAX_BYTES = 1 << 20
MAX_DEPTH = 20
_TAGS = {
    "tag:yaml.org,2002:null",
    "tag:yaml.org,2002:bool",
    "tag:yaml.org,2002:int",
    "tag:yaml.org,2002:float",
    "tag:yaml.org,2002:str",
}


class _Loader(yaml.SafeLoader):
    """SafeLoader under YAML 1.2's idea of true and false (`no` and `on` stay text), without anchors and tags."""

    depth = 0  # of the node that is being read; PyYAML would go on to the end of the stack

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if (
            isinstance(event, yaml.AliasEvent)
            or getattr(event, "anchor", None)
            or getattr(event, "tag", None)
        ):
            raise _Forbidden(event.start_mark.line + 1)
        if self.depth > MAX_DEPTH:
            raise _TooDeep(event.start_mark.line + 1)
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _TooDeep(Exception):
    """Lists in lists in lists, at that line."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class _Forbidden(Exception):
    """An anchor, alias or tag at that line."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, regexp)
        for tag, regexp in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def parse(text: str, *, name: str) -> Node:
    """The document in `text`; ProfileError names `name`, line and fix."""
    if len(text) > MAX_BYTES:
        raise ProfileError(
            f"{name}: larger than 1 MiB", hint="a profile is a page of YAML; is this the right file?"
        )
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            if root is None:
                raise ProfileError(f"{name}: the file is empty", hint="dflashctl profile show reference")
            return _convert(loader, root, name)
        finally:
            loader.dispose()
    except _Forbidden as found:
        raise ProfileError(
            f"{name}:{found.line}: anchors, aliases and tags are not allowed",
            hint="write the value out where it is needed",
        ) from found
    except _TooDeep as found:
        raise ProfileError(
            f"{name}:{found.line}: nested more than {MAX_DEPTH} deep", hint="dflashctl profile show reference"
        ) from found
    except yaml.MarkedYAMLError as error:
        raise _syntax(error, name) from error
    except yaml.YAMLError as error:
        raise ProfileError(f"{name}: not YAML: {error}", hint="dflashctl profile show reference") from error


def parse_value(text: str, *, name: str) -> Node:
    """A single value as `--set` gives it: YAML where it is YAML, else the text itself."""
    try:
        return _at(parse(text, name=name), name)
    except ProfileError:
        return Node(where=name, scalar=text)


def _at(node: Node, where: str) -> Node:
    """`node` without line numbers: an option has one line only."""
    items = tuple(_at(item, where) for item in node.items) if node.items is not None else None
    fields = tuple((key, _at(item, where)) for key, item in node.fields) if node.fields is not None else None
    return Node(where=where, scalar=node.scalar, items=items, fields=fields)


def _syntax(error: yaml.MarkedYAMLError, name: str) -> ProfileError:
    mark = error.problem_mark or error.context_mark
    place = f"{name}:{mark.line + 1}" if mark else name
    return ProfileError(f"{place}: not valid YAML: {error.problem}", hint="dflashctl profile show reference")


def _convert(loader: _Loader, node: yaml.Node, name: str) -> Node:
    where = f"{name}:{node.start_mark.line + 1}"
    if isinstance(node, yaml.MappingNode):
        return Node(where=where, fields=_fields(loader, node, name))
    if isinstance(node, yaml.SequenceNode):
        return Node(where=where, items=tuple(_convert(loader, item, name) for item in node.value))
    if node.tag not in _TAGS:
        raise ProfileError(f"{where}: {node.value!r} is not a plain value", hint="put it in quotes")
    value: Scalar = loader.construct_object(node)
    return Node(where=where, scalar=value)


def _fields(loader: _Loader, node: yaml.MappingNode, name: str) -> tuple[tuple[str, Node], ...]:
    fields: dict[str, Node] = {}
    for key_node, value_node in node.value:
        key: Hashable = loader.construct_object(key_node)
        line = key_node.start_mark.line + 1
        if not isinstance(key, str):
            raise ProfileError(f"{name}:{line}: the key {key!r} is not text", hint="put it in quotes")
        if key in fields:
            raise ProfileError(f"{name}:{line}: the key {key!r} stands twice", hint="keep one of the two")
        fields[key] = _convert(loader, value_node, name)
    return tuple(fields.items())
