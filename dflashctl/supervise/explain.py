"""Explain: a log from wherever it lies, and the first cause that the known signatures find in it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from dflashctl.core.diagnose import Diagnosis, diagnose
from dflashctl.core.errors import UsageProblem
from dflashctl.core.log_line import parse
from dflashctl.edges.signature_store import load_signatures

if TYPE_CHECKING:
    from collections.abc import Sequence

_LIMIT_BYTES = 64 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024


def first_cause(lines: Sequence[str]) -> Diagnosis | None:
    """The diagnosis of these lines, stamped by our pump or not."""
    return diagnose([parse(line).text for line in lines], load_signatures())


def read_log(path: str) -> tuple[str, ...]:
    """The lines of a file, or of standard input for "-"; of a huge one the last 64 MiB."""
    if path == "-":
        return tuple(_standard_input().decode("utf-8", "replace").splitlines())
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LIMIT_BYTES))
            return tuple(file.read().decode("utf-8", "replace").splitlines())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageProblem(
            f"log {path!r} cannot be read: {reason}", hint="dflashctl diagnose NAME"
        ) from error


def _standard_input() -> bytes:
    """Its last 64 MiB, read to the end so that its writer is not cut off."""
    if sys.stdin is None:
        raise UsageProblem("standard input is closed", hint="dflashctl diagnose FILE")
    kept = bytearray()
    try:
        while block := sys.stdin.buffer.read(_BLOCK_BYTES):
            kept += block
            if len(kept) > 2 * _LIMIT_BYTES:
                del kept[:-_LIMIT_BYTES]
    except (OSError, ValueError) as error:
        raise UsageProblem(
            f"standard input cannot be read: {error}", hint="dflashctl diagnose FILE"
        ) from error
    return bytes(kept[-_LIMIT_BYTES:])
