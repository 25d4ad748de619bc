"""A cheap look at one model file: milliseconds, whatever its size."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dflashctl.core.model_files import FileReport, FileStatus
from dflashctl.core.safetensors_header import (
    LENGTH_BYTES,
    header_bytes,
    is_lfs_pointer,
    is_web_page,
    problem_of_header,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dflashctl.core.model_files import ModelFile

_SNIFF_BYTES = 512


def look_at(path: Path, file: ModelFile, proven: Callable[[os.stat_result], str | None]) -> FileReport:
    """Missing, truncated, a pointer or page instead of weights, a header that does not fit, or fine.

    A file is verified when it was proven before and nothing about it changed since.
    """
    try:
        status = path.stat()
        with path.open("rb") as stream:
            first = stream.read(_SNIFF_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return FileReport(file=file, status=FileStatus.MISSING)
    except OSError as error:
        return FileReport(file=file, status=FileStatus.UNREADABLE, detail=error.strerror)
    return _impostor(file, first) or _misfit(path, file, status) or _known(file, status, proven)


def safetensors_header(path: Path) -> bytes | None:
    """The JSON header, None when the file cannot be whole."""
    try:
        with path.open("rb") as stream:
            length = header_bytes(stream.read(LENGTH_BYTES), os.fstat(stream.fileno()).st_size)
            return stream.read(length) if length is not None else None
    except OSError:
        return None


def _impostor(file: ModelFile, first: bytes) -> FileReport | None:
    if is_lfs_pointer(first) and file.path.endswith(".safetensors"):
        detail = "a Git LFS pointer instead of the file; run git lfs pull, or fetch it from the Hub"
        return FileReport(file=file, status=FileStatus.LFS_POINTER, detail=detail)
    if is_web_page(first) and not file.path.endswith((".html", ".md")):
        detail = "a web page (a login or proxy page?) instead of the file"
        return FileReport(file=file, status=FileStatus.WEB_PAGE, detail=detail)
    return None


def _misfit(path: Path, file: ModelFile, status: os.stat_result) -> FileReport | None:
    if status.st_size != file.size_bytes:
        detail = f"{status.st_size} bytes instead of {file.size_bytes}"
        return FileReport(file=file, status=FileStatus.WRONG_SIZE, detail=detail)
    if not file.path.endswith(".safetensors"):
        return None
    header = safetensors_header(path)
    problem = "no such header can be" if header is None else problem_of_header(header, status.st_size)
    return FileReport(file=file, status=FileStatus.BAD_HEADER, detail=problem) if problem else None


def _known(
    file: ModelFile, status: os.stat_result, proven: Callable[[os.stat_result], str | None]
) -> FileReport:
    sha256 = proven(status)
    if sha256 is None:
        return FileReport(file=file, status=FileStatus.UNVERIFIED)
    if file.sha256 and sha256 != file.sha256:
        detail = f"expected {file.sha256}, found {sha256}"
        return FileReport(file=file, status=FileStatus.WRONG_CONTENT, detail=detail, sha256=sha256)
    return FileReport(file=file, status=FileStatus.VERIFIED, sha256=sha256)
