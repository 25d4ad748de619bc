"""The head of a safetensors file: whether it can belong to a whole file of a given size.

The layout is 8 bytes of little-endian header length, a JSON header, then the tensors without gaps at the end
(https://huggingface.co/docs/safetensors, "Format").
"""

from __future__ import annotations

from dflashctl.core.json_text import json_loads

LENGTH_BYTES = 8
LEAST_HEADER_BYTES = 2
MAX_HEADER_BYTES = 100_000_000
LFS_MARK = b"version https://git-lfs"
_WEB_MARKS = (b"<!doctype html", b"<html")


def header_bytes(first: bytes, size_bytes: int) -> int | None:
    """The header's length in bytes as the first 8 bytes say, None when no such file can exist."""
    if len(first) < LENGTH_BYTES:
        return None
    length = int.from_bytes(first[:LENGTH_BYTES], "little")
    if not LEAST_HEADER_BYTES <= length <= min(MAX_HEADER_BYTES, size_bytes - LENGTH_BYTES):
        return None
    return length


def problem_of_header(header: bytes, size_bytes: int) -> str | None:
    """What is wrong with a file of `size_bytes` that has this JSON `header`, None when it is whole."""
    try:
        entries = json_loads(header)
    except ValueError:
        return "the header is not JSON"
    if not isinstance(entries, dict):
        return "the header is not a JSON object"
    ends = [entry["data_offsets"][1] for entry in entries.values() if _has_offsets(entry)]
    expected = LENGTH_BYTES + len(header) + max(ends, default=0)
    if expected != size_bytes:
        return f"the header describes {expected} bytes, the file has {size_bytes}"
    return None


def shapes_of_header(header: bytes) -> dict[str, tuple[int, ...]]:
    """Tensor name → shape."""
    entries = json_loads(header)
    return {name: tuple(entry["shape"]) for name, entry in entries.items() if _has_offsets(entry)}


def is_lfs_pointer(first: bytes) -> bool:
    return first.startswith(LFS_MARK)


def is_web_page(first: bytes) -> bool:
    return first.lstrip()[:32].lower().startswith(_WEB_MARKS)


def _has_offsets(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    offsets = entry.get("data_offsets")
    return isinstance(offsets, list) and len(offsets) == 2 and all(isinstance(o, int) for o in offsets)  # noqa: PLR2004
