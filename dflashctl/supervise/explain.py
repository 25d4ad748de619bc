"""Explain: a log from wherever it lies, packed or not, and the first cause that the known signatures find in it."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.diagnose import Diagnosis, diagnose
from dflashctl.core.errors import UsageProblem
from dflashctl.core.log_line import parse
from dflashctl.edges.signature_store import load_signatures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

_LIMIT_BYTES = 64 * 1024 * 1024
_BLOCK_BYTES = 1024 * 1024
_GZIP = b"\x1f\x8b\x08"
_HEAD_BYTES = 64 * 1024
_STRANGE = 0.3
# Everything but the control characters that no terminal output has.
_IN_TEXT = bytes(set(range(256)) - (set(range(32)) - set(b"\b\t\n\v\f\r\x1b")) - {0x7F})


@dataclass(frozen=True, kw_only=True)
class LogText:
    """`unpacked`: it was a gzip file."""

    lines: tuple[str, ...]
    unpacked: bool = False


def first_cause(lines: Sequence[str]) -> Diagnosis | None:
    """The diagnosis of these lines, stamped by our pump or not."""
    return diagnose([parse(line).text for line in lines], load_signatures())


def read_log(path: str) -> LogText:
    """The lines of a file, or of standard input for "-", unpacked where they are gzip; of a huge one the last 64 MiB.

    UsageProblem for what cannot be read, and for what is no text.
    """
    if path == "-":
        content = _standard_input()
        packed = content.startswith(_GZIP)
        shown = "standard input"
        return _text(_unpacked(io.BytesIO(content), shown) if packed else content, shown, unpacked=packed)
    try:
        with open(path, "rb") as file:
            packed = file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
            if not packed:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LIMIT_BYTES))
            return _text(_unpacked(file, repr(path)) if packed else file.read(), repr(path), unpacked=packed)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageProblem(
            f"log {path!r} cannot be read: {reason}", hint="dflashctl diagnose NAME"
        ) from error


def _text(content: bytes, shown: str, *, unpacked: bool) -> LogText:
    if _is_binary(content):
        raise UsageProblem(f"{shown} is no text, so it is no log", hint="dflashctl diagnose FILE.log")
    return LogText(lines=tuple(content.decode("utf-8", "replace").splitlines()), unpacked=unpacked)


def _unpacked(file: BinaryIO, shown: str) -> bytes:
    """The last 64 MiB of what is packed there; what cannot be unpacked any more, as in a cut file, is left out."""
    kept = _Tail()
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            kept.fill(packed.read1)  # which hands over what comes before a fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if not kept.content:
            raise UsageProblem(
                f"{shown} is no whole gzip file: {error}", hint="dflashctl diagnose FILE.log"
            ) from error
    return kept.content


def _is_binary(content: bytes) -> bool:
    """By its beginning: bytes that no log has, more than a crash between its lines would leave.

    Zeros before it are what is left of a log that was cut while its writer went on.
    """
    head = content.lstrip(b"\0")[:_HEAD_BYTES]
    strange = len(head.translate(None, _IN_TEXT)) + head.decode("utf-8", "replace").count(
        "\N{REPLACEMENT CHARACTER}"
    )
    return strange > len(head) * _STRANGE


class _Tail:
    """The last 64 MiB of a stream, read to its end so that its writer is not cut off."""

    def __init__(self) -> None:
        self._kept = bytearray()

    @property
    def content(self) -> bytes:
        return bytes(self._kept[-_LIMIT_BYTES:])

    def fill(self, read: Callable[[int], bytes]) -> None:
        while block := read(_BLOCK_BYTES):
            self._kept += block
            if len(self._kept) > 2 * _LIMIT_BYTES:
                del self._kept[:-_LIMIT_BYTES]


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise UsageProblem("standard input is closed", hint="dflashctl diagnose FILE")
    kept = _Tail()
    try:
        kept.fill(sys.stdin.buffer.read)
    except (OSError, ValueError) as error:
        raise UsageProblem(
            f"standard input cannot be read: {error}", hint="dflashctl diagnose FILE"
        ) from error
    return kept.content
