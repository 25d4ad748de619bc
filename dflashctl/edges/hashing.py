"""Hashing on all cores: SHA-256 of every file, and git's SHA-1 of small ones in the same read."""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, cast

from dflashctl.core.model_files import FileReport, FileStatus
from dflashctl.core.proof import judged
from dflashctl.edges.cores import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

    from dflashctl.core.model_files import ModelFile
    from dflashctl.ports.weight_store import HashJob

# hashlib releases the interpreter lock for such blocks, so threads use all cores; smaller ones cost switches.
_BLOCK_BYTES = 4 * 1024 * 1024
_SNIFF_BYTES = 64
_buffers = threading.local()


class PoolHasher:
    """`proven` is told of each file whose content is right."""

    def __init__(self, proven: Callable[[Path, str], None]) -> None:
        self._pool = ThreadPoolExecutor(usable_cores(), thread_name_prefix="hash")
        self._proven = proven
        self._jobs: list[tuple[HashJob, Future[FileReport]]] = []
        self._done = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def __enter__(self) -> PoolHasher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def submit(self, job: HashJob) -> None:
        self._jobs.append((job, self._pool.submit(self._prove, job)))

    def done_bytes(self) -> int:
        return self._done

    def pending(self) -> bool:
        return any(not future.done() for _, future in self._jobs)

    def results(self) -> tuple[tuple[HashJob, FileReport], ...]:
        return tuple((job, future.result()) for job, future in self._jobs)

    def _prove(self, job: HashJob) -> FileReport:
        try:
            first, sha256, git_sha1, size_bytes = self._digests(job.path, job.file)
        except OSError as error:
            return FileReport(file=job.file, status=FileStatus.UNREADABLE, detail=error.strerror)
        report = judged(job.file, first, sha256, git_sha1, size_bytes=size_bytes)
        if report.status is FileStatus.VERIFIED:
            self._proven(job.path, sha256)
        return report

    def _digests(self, path: Path, file: ModelFile) -> tuple[bytes, str, str | None, int]:
        """The first bytes, SHA-256, git's SHA-1 when that is all that is known of the file, and how many bytes."""
        sha256 = hashlib.sha256()
        git = None if file.sha256 or not file.git_sha1 else hashlib.sha1(usedforsecurity=False)
        block = _buffer()
        first, size_bytes = b"", 0
        with path.open("rb", buffering=0) as stream:
            if git is not None:
                git.update(b"blob %d\0" % os.fstat(stream.fileno()).st_size)
            while (count := stream.readinto(block)) and not self._stop.is_set():
                part = block[:count]
                first = first or bytes(part[:_SNIFF_BYTES])
                sha256.update(part)
                size_bytes += count
                if git is not None:
                    git.update(part)
                with self._lock:
                    self._done += count
        return first, sha256.hexdigest(), git.hexdigest() if git is not None else None, size_bytes


def _buffer() -> memoryview:
    block = getattr(_buffers, "block", None)
    if block is None:
        block = _buffers.block = memoryview(bytearray(_BLOCK_BYTES))
    return cast("memoryview", block)
