"""Hub: the Hugging Face Hub and its cache, reached only through a child process that can be stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dflashctl.core.model_files import Listing, ModelFile
    from dflashctl.core.weights import Access


@dataclass(frozen=True, kw_only=True)
class TokenRules:
    """Where a token may come from and go to: an open descriptor, and the one foreign host that may have it."""

    descriptor: int | None = None
    send_to: str | None = None


@dataclass(frozen=True, kw_only=True)
class Order:
    """Files of one repository at one commit, to be brought into the cache."""

    repo: str
    commit: str
    files: tuple[ModelFile, ...]


@dataclass(frozen=True, kw_only=True)
class TransferEvent:
    """What a transfer reports: bytes on disk so far, a file that is whole, or a waiting time the server asked for."""

    written_bytes: int | None = None
    finished: tuple[str, str] | None = None
    waiting_s: float | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """How a transfer ended; `failed` are (path, reason) of files that could not be brought."""

    failed: tuple[tuple[str, str], ...] = ()
    restarts: int = 0
    transport: str = "http"


class Hub(Protocol):
    def access(self, rules: TokenRules) -> Access:
        """The endpoint, the token's source and whether it is sent there, without any request."""

    def cache(self) -> Path:
        """The folder of the hub cache, which need not exist."""

    def xet_cache(self) -> Path:
        """Where the Xet transport keeps chunks of its own, beside what it brings into the cache."""

    def snapshot(self, repo: str, commit: str) -> Path:
        """Where the files of that commit lie in the cache, whether they are there or not."""

    def listing(
        self, repo: str, revision: str | None, rules: TokenRules, notify: Callable[[TransferEvent], None]
    ) -> Listing:
        """The commit that `revision` means and its files; Unavailable or Permanent says why not."""

    def cached_listing(self, repo: str, commit: str) -> Listing | None:
        """What the cache itself knows of that commit, without the network; None when it has nothing."""

    def read(
        self, repo: str, commit: str, path: str, rules: TokenRules, notify: Callable[[TransferEvent], None]
    ) -> bytes:
        """A small file, not stored: the proof that this account may read the repository at that commit."""

    def fetch(
        self, orders: tuple[Order, ...], rules: TokenRules, notify: Callable[[TransferEvent], None]
    ) -> Transfer:
        """Bring all files into the cache; returns when every one is there or given up."""

    def sweep(self, repo: str) -> int:
        """Remove partial files that no transfer holds, and say how many bytes that freed."""

    def close(self) -> None:
        """Stop the child process, within two seconds whatever it does."""
