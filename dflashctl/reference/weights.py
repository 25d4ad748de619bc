"""Read a model folder: config.json as a dictionary, safetensors files as float32 arrays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from dflashctl.reference.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Array = NDArray[np.float32]
    Tensors = dict[str, Array]


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """Return the JSON object in ``folder/name``.

    Raises StartError when the folder or the file is missing or does not hold an object.
    """
    if not folder.is_dir():
        raise StartError(f"model folder {str(folder)!r} does not exist")
    path = folder / name
    if not path.is_file():
        raise StartError(f"model folder {str(folder)!r} has no {name}")
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise StartError(f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise StartError(f"{str(path)!r} does not hold a JSON object")
    return value


def read_tensors(folder: Path) -> Tensors:
    """Return every tensor of the folder's ``*.safetensors`` files as float32, by name."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise StartError(f"model folder {str(folder)!r} has no .safetensors file")
    tensors: Tensors = {}
    for path in files:
        tensors.update(_read_file(path))
    return tensors


def take(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    """Return the tensor ``name``, or raise StartError when it is missing or not of ``shape``."""
    if name not in tensors:
        raise StartError(f"the checkpoint has no tensor {name!r}")
    found = tensors[name]
    if found.shape != shape:
        raise StartError(f"tensor {name!r} has shape {found.shape}, but the config says {shape}")
    return found


def _read_file(path: Path) -> Tensors:
    from safetensors import SafetensorError, deserialize

    try:
        entries: list[tuple[str, dict[str, Any]]] = deserialize(path.read_bytes())  # type: ignore[no-untyped-call]
    except SafetensorError as error:
        raise StartError(f"{str(path)!r} is not a safetensors file: {error}") from error
    return {name: _to_float32(name, entry) for name, entry in entries}


def _to_float32(name: str, entry: Mapping[str, Any]) -> Array:
    data, kind = entry["data"], entry["dtype"]
    if kind == "BF16":  # the upper half of a float32
        flat = (np.frombuffer(data, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif kind in {"F16", "F32"}:
        flat = np.frombuffer(data, "<f2" if kind == "F16" else "<f4").astype(np.float32)
    else:
        raise StartError(f"tensor {name!r} is {kind}; the reference engine reads BF16, F16 and F32")
    shaped: Array = flat.reshape(entry["shape"])
    return shaped
