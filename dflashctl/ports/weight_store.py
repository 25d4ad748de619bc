"""WeightStore: model files, locks and remembered verification on this machine's disks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dflashctl.core.model_files import FileReport, ModelFile
    from dflashctl.core.weights import DiskRoom
    from dflashctl.core.weights_lock import Lock


@dataclass(frozen=True, kw_only=True)
class HashJob:
    """A file whose content is to be proven."""

    path: Path
    file: ModelFile


class Hasher(Protocol):
    """Hashes files on all cores while others are still arriving."""

    def submit(self, job: HashJob) -> None: ...

    def done_bytes(self) -> int:
        """Bytes hashed so far."""

    def pending(self) -> bool:
        """Whether any file is still to be hashed."""

    def results(self) -> tuple[tuple[HashJob, FileReport], ...]:
        """Wait for all and return them in the order of submission."""


class WeightStore(Protocol):
    def answers(self, folder: Path) -> bool:
        """Whether the file system of `folder` answers at all; what is asked of one that does not never returns."""

    def look(self, folder: Path, files: tuple[ModelFile, ...]) -> tuple[FileReport, ...]:
        """The cheap check: there, right size, no pointer, a sane header, and unchanged since it was verified."""

    def local_files(self, folder: Path) -> tuple[ModelFile, ...]:
        """All files of a local model folder; Permanent when it is missing or has another layout."""

    def read_bytes(self, path: Path) -> bytes | None:
        """A small file, None when it is not there."""

    def tensor_shape(self, path: Path, tensor: str) -> tuple[int, ...] | None:
        """The shape of a tensor from a safetensors file's header, None when it is not in there."""

    def hasher(self) -> AbstractContextManager[Hasher]:
        """A pool of as many workers as this process may use cores; what it proves is remembered."""

    def set_aside(self, folder: Path, report: FileReport) -> Path | None:
        """Move a bad file (its blob in a cache) out of the way and return its new place; None when it is gone.

        A link that leads out of the repository is moved itself; what it points to is never touched.
        """

    def is_as_fetched(self, folder: Path, report: FileReport) -> bool:
        """Whether a file in a hub cache is what the Hub sent: content and size by the hash that the Hub named it with.

        A file that is bad all the same contradicts the lock, not the Hub.
        """

    def room(self, path: Path) -> DiskRoom:
        """What is left on the filesystem that holds `path` or its nearest existing parent."""

    def exclusive(
        self, cache: Path, repo: str, waiting: Callable[[str], None]
    ) -> AbstractContextManager[None]:
        """Only one dflashctl at a time fetches a repository into a cache; `waiting` is told who is in front."""

    def find_lock(self, profile_path: Path, *, shipped: bool) -> tuple[Path, Lock] | None:
        """The lock beside the profile or in the state folder."""

    def write_lock(self, profile_path: Path, lock: Lock, *, shipped: bool) -> Path:
        """Write it beside the profile, or in the state folder when that cannot be written or is the package."""

    def rate(self) -> float | None:
        """Bytes per second of the last fetch on this machine, None before the first."""

    def remember_rate(self, bytes_per_s: float) -> None: ...
