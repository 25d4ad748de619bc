"""Instances: what is written down about the servers of this user, and who owns them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typing_extensions import Self

    from dflashctl.core.instance import InstanceRecord, JournalEvent, Phase, Snapshot


class OwnedInstance(Protocol):
    """An instance whose lock is held. A context manager: leaving it gives the lock up.

    `previous` is the record found when the lock was taken. `unclean` says that its owner went without a goodbye.
    """

    name: str
    folder: Path
    previous: InstanceRecord | None
    unclean: bool

    def __enter__(self) -> Self: ...

    def __exit__(self, *exc: object) -> None: ...

    @property
    def log_path(self) -> Path:
        """The server's log, whether it is there yet or not."""

    @property
    def current(self) -> InstanceRecord:
        """The record as last given, or a fresh one in phase preflight."""

    def record(self, record: InstanceRecord) -> None:
        """Replace the record on disk, all or nothing; a full disk is counted, never raised."""

    def enter(self, phase: Phase, text: str) -> None:
        """Record and journal that `phase` has begun."""

    def event(self, kind: str, text: str, *, phase: Phase | None = None, attempt: int | None = None) -> None:
        """Append one event to the journal; a full disk is counted, never raised."""

    def write(self, name: str, text: str) -> Path:
        """Write a file of the instance's folder, readable by its owner only."""

    def runtime_folder(self) -> Path:
        """A folder with a short path for sockets and secrets; made again when it was removed, gone with the lock."""

    def forget_leftovers(self) -> None:
        """The sessions of the previous life are gone: neither they nor its short-lived files are kept any more."""

    def lock_descriptor(self) -> int:
        """The descriptor that holds the lock, to hand it to a detached supervisor."""

    def still_held(self) -> bool:
        """Whether others still find our lock; one that was removed is made again, with its folder.

        False when somebody else took the instance meanwhile: from then on nothing is written any more.
        """


class Instances(Protocol):
    def own(self, name: str, *, brief: bool = False) -> OwnedInstance:
        """Take the instance's lock; Busy names the owner, StateError the folder that cannot be used.

        `brief` tells others that it is given up soon, and that nothing runs under it.
        """

    def adopt(self, name: str, descriptor: int) -> OwnedInstance:
        """Go on as the owner with a lock that another process took and handed over."""

    def read(self, name: str) -> Snapshot:
        """What is known of that instance, whatever state its files are in."""

    def members(self, name: str) -> tuple[int, ...]:
        """The pids of all living processes of that instance's server, as far as they show here."""

    def names(self) -> tuple[str, ...]:
        """All instances that were ever started here, sorted; StateError names a folder that cannot be read."""

    def odd_folders(self) -> tuple[str, ...]:
        """Folders among the instances' that none of them can have made."""

    def full_folder(self) -> str | None:
        """The state folder when its disk is full: then no record is written, and the last ones may be old."""

    def events(self, name: str) -> tuple[JournalEvent, ...]:
        """The journal, oldest first; unreadable lines are left out."""

    def read_text(self, name: str, file: str) -> str | None:
        """A file that its owner wrote into the instance's folder, None when it is not there."""

    def log_files(self, name: str) -> tuple[Path, ...]:
        """The server's log and its rotated parts, oldest first."""

    def log_tail(self, name: str, count: int | None = None) -> tuple[str, ...]:
        """The last `count` lines of the server's log, all for None, oldest first."""

    def log_follow(self, name: str) -> Callable[[], tuple[str, ...]]:
        """A function that gives the lines written since its last call, across rotations."""
