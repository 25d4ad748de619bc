"""Model files: what a repository or folder holds, what is expected, and what a look at the disk says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """One file of a model: `path` with forward slashes; the Hub gives SHA-256 for big files, git's SHA-1 for small.

    Both hashes are None for a local file that nobody hashed yet.
    """

    path: str
    size_bytes: int
    sha256: str | None = None
    git_sha1: str | None = None

    @property
    def blob(self) -> str | None:
        """The name of its content in the hub cache: git's hash for the files that the Hub keeps in git."""
        return self.git_sha1 or self.sha256


@dataclass(frozen=True, kw_only=True)
class Listing:
    """All files of a repository at one commit (`commit` None for a local folder).

    `moved_to` is the repository's present name when the Hub redirected.
    """

    repo: str
    commit: str | None
    files: tuple[ModelFile, ...]
    moved_to: str | None = None


class FileStatus(str, Enum):
    """What is known about a file on disk, from good to bad."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    MISSING = "missing"
    WRONG_SIZE = "wrong_size"
    LFS_POINTER = "lfs_pointer"
    WEB_PAGE = "web_page"
    BAD_HEADER = "bad_header"
    WRONG_CONTENT = "wrong_content"
    UNREADABLE = "unreadable"


BAD = frozenset(FileStatus) - {FileStatus.VERIFIED, FileStatus.UNVERIFIED, FileStatus.MISSING}


@dataclass(frozen=True, kw_only=True)
class FileReport:
    """The state of one expected file; `sha256` is of the content on disk when it is known."""

    file: ModelFile
    status: FileStatus
    detail: str | None = None
    sha256: str | None = None

    @property
    def usable(self) -> bool:
        return self.status in {FileStatus.VERIFIED, FileStatus.UNVERIFIED}


@dataclass(frozen=True, kw_only=True)
class CodeFile:
    """A Python file that the engine would run from the model's repository."""

    path: str
    sha256: str | None


def total_bytes(files: tuple[ModelFile, ...]) -> int:
    """The bytes of `files`, each content once, since the cache keeps it once."""
    return sum({file.blob or file.path: file.size_bytes for file in files}.values())
