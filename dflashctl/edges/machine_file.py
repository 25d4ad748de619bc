"""Saved machines: one YAML (or JSON) document per host, read strictly and written without what identifies it."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import tempfile
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from dflashctl.core.anonymous import anonymous
from dflashctl.core.errors import MachineError, ProfileError
from dflashctl.core.load import load
from dflashctl.core.machine import Machine
from dflashctl.edges.yaml_node import parse

if TYPE_CHECKING:
    from dflashctl.core.machine import Gpu
    from dflashctl.core.node import Node

SCHEMA_VERSION = 1
_SCHEMA = "schema_version"
_HINT = "write one with: dflashctl doctor --save-machine FILE"
_PAIR = 2
_HEAD = "# A machine as `dflashctl doctor --save-machine` saw it; judge it with `dflashctl doctor --machine FILE`.\n"


def read_machine(path: Path) -> Machine:
    """The machine in `path`; MachineError names the file, the line and the fix."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise MachineError(f"cannot read the machine file {str(path)!r}: {reason}", hint=_HINT) from error
    return parse_machine(text, name=str(path))


def parse_machine(text: str, *, name: str) -> Machine:
    """The machine in `text`, which came from `name`."""
    try:
        root = parse(text, name=name)
    except ProfileError as error:
        raise MachineError(error.message, hint=_HINT) from error
    _check_schema(root, name)
    body = dataclasses.replace(root, fields=tuple(f for f in root.fields or () if f[0] != _SCHEMA))
    machine, problems = load(body, Machine)
    lines = [str(problem) for problem in problems] + (_broken(machine, name) if machine else [])
    if machine is None or lines:
        raise MachineError(f"{name} is not a saved machine", hint=_HINT, detail="\n".join(lines))
    return dataclasses.replace(machine, gpus=tuple(_without_zero(gpu) for gpu in machine.gpus))


def write_machine(machine: Machine, path: Path, home: str | None = None) -> None:
    """Write `machine` to `path` in one step, without host name, serial numbers, UUIDs or private paths.

    `home` is the home folder of who saves it. A device or pipe is written to: replacing it would take it away from
    everybody.
    """
    document = {_SCHEMA: SCHEMA_VERSION, **plain(anonymous(machine, home))}
    text = _HEAD + yaml.safe_dump(
        document, sort_keys=False, default_flow_style=None, width=110, allow_unicode=True
    )
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            path.write_text(text, encoding="utf-8")
            return
        _replace(path, text)
    except OSError as error:
        raise MachineError(
            f"cannot write the machine file {str(path)!r}: {error.strerror}",
            hint="name a file in a folder you may write",
        ) from error


def _replace(path: Path, text: str) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def plain(value: Any) -> Any:
    """Plain values of a dataclass, fields that hold their default left out."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    pairs = ((field, getattr(value, field.name)) for field in dataclasses.fields(value))
    return {field.name: plain(item) for field, item in pairs if item != field.default}


def _check_schema(root: Node, name: str) -> None:
    node = root.get(_SCHEMA)
    if root.fields is None or node is None:
        raise MachineError(f"{name} is not a saved machine: {_SCHEMA} is missing", hint=_HINT)
    if node.scalar != SCHEMA_VERSION:
        raise MachineError(
            f"{node.where}: {_SCHEMA} {node.scalar!r} is not one this version knows ({SCHEMA_VERSION})",
            hint="use the dflashctl release that wrote the file",
        )


def _without_zero(gpu: Gpu) -> Gpu:
    """Older files have 0 for a memory that could not be read."""
    return gpu if gpu.memory_total_bytes else dataclasses.replace(gpu, memory_total_bytes=None)


def _broken(machine: Machine, name: str) -> list[str]:
    """What the types cannot say: sizes of pairs, GPUs that are named twice, links to nowhere."""
    lines = [
        f"{name}: gpus[{place}].compute_capability: must be two numbers"
        for place, gpu in enumerate(machine.gpus)
        if gpu.compute_capability is not None and len(gpu.compute_capability) != _PAIR
    ]
    indices = [gpu.index for gpu in machine.gpus]
    if len(set(indices)) != len(indices) or len({gpu.uuid for gpu in machine.gpus}) != len(indices):
        lines.append(f"{name}: gpus: index and uuid must differ from GPU to GPU")
    lines += [
        f"{name}: links[{place}]: joins GPUs {link.a} and {link.b}, which are not both here"
        for place, link in enumerate(machine.links)
        if link.a not in indices or link.b not in indices or link.a >= link.b
    ]
    return lines
