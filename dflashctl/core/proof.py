"""Proof: whether content is what was expected, and what it is instead."""

from __future__ import annotations

import hashlib

from dflashctl.core.model_files import FileReport, FileStatus, ModelFile
from dflashctl.core.safetensors_header import is_web_page


def judged(
    file: ModelFile, first: bytes, sha256: str, git_sha1: str | None, *, size_bytes: int
) -> FileReport:
    """The verdict on a file's content; a file that nothing is known of is taken as it is."""
    wrong = sha256 != file.sha256 if file.sha256 else bool(file.git_sha1) and git_sha1 != file.git_sha1
    if not wrong and size_bytes != file.size_bytes:
        detail = f"{size_bytes} bytes instead of {file.size_bytes}"
        return FileReport(file=file, status=FileStatus.WRONG_SIZE, detail=detail, sha256=sha256)
    if not wrong:
        return FileReport(file=file, status=FileStatus.VERIFIED, sha256=sha256)
    if is_web_page(first):
        detail = "a web page (a login or proxy page?) instead of the file"
        return FileReport(file=file, status=FileStatus.WEB_PAGE, detail=detail, sha256=sha256)
    expected, found = (file.sha256, sha256) if file.sha256 else (file.git_sha1, git_sha1)
    detail = f"expected {expected}, found {found}"
    return FileReport(file=file, status=FileStatus.WRONG_CONTENT, detail=detail, sha256=sha256)


def judged_bytes(file: ModelFile, content: bytes) -> FileReport:
    """The verdict on a small file that is in memory; git's SHA-1 is of "blob SIZE" and the content."""
    git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return judged(file, content[:64], hashlib.sha256(content).hexdigest(), git, size_bytes=len(content))
