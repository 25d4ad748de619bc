"""FileInstances: instances as folders; a lock decides who owns one, a JSON record describes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.decode import decode
from dflashctl.core.errors import Busy, StateError
from dflashctl.core.instance import InstanceRecord, JournalEvent, Phase, Snapshot, check_name, is_name
from dflashctl.core.json_text import json_loads
from dflashctl.edges import log_tail, private_files
from dflashctl.edges.instance_lock import holder, is_locked, sign, signature, take_lock
from dflashctl.edges.owned_instance import EVENTS, LOG, RECORD, FileOwnedInstance
from dflashctl.edges.places import state_folder
from dflashctl.edges.processes import is_alive, is_here, session_members
from dflashctl.edges.room import has_room

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from dflashctl.core.instance import Identity

_RECORD_LIMIT_BYTES = 1024 * 1024
_EVENTS_LIMIT_BYTES = 16 * 1024 * 1024
_BELOW = ("v1", "instances")


class FileInstances:
    def __init__(self, *, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._root = state_folder(environ)

    def own(self, name: str, *, brief: bool = False) -> FileOwnedInstance:
        folder = self._folder(check_name(name), create=True)
        try:
            lock = take_lock(folder, str(self._path(name)), brief=brief)
        except BlockingIOError:
            busy = _busy(folder, name)
            os.close(folder)
            raise busy from None
        except BaseException:
            os.close(folder)
            raise
        return self._owned(name, folder, lock)

    def adopt(self, name: str, descriptor: int) -> FileOwnedInstance:
        folder = self._folder(check_name(name), create=True)
        os.set_inheritable(descriptor, False)  # noqa: FBT003 - no keyword in os
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        sign(descriptor, str(self._path(name)))
        owned = self._owned(name, folder, descriptor)
        owned.unclean = False  # the record is that of the owner who hands over
        return owned

    def read(self, name: str) -> Snapshot:
        try:
            folder = self._folder(check_name(name, new=False), create=False)
        except FileNotFoundError:
            return Snapshot(name=name, supervised=False)
        try:
            record, problem = _read_record(folder)
            supervised = is_locked(folder)
            owner, brief = signature(folder) if supervised else (None, False)
            found = holder(folder, owner) if owner is not None else None
        finally:
            os.close(folder)
        if record is not None and supervised and not _is_by_owner(record, owner):
            record = _taken_over(record, found)
        if problem is not None:
            problem = f"the record '{self._path(name) / RECORD}' is damaged: {problem}"
        return Snapshot(
            name=name,
            supervised=supervised,
            record=record,
            problem=problem,
            owner_pid=owner,
            owner=found,
            brief=brief,
        )

    def members(self, name: str) -> tuple[int, ...]:
        record = self.read(name).record
        return tuple(stat.pid for stat in session_members(record.sessions)) if record else ()

    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self._folders() if is_name(name))

    def odd_folders(self) -> tuple[str, ...]:
        return tuple(str(self._path(name)) for name in self._folders() if not is_name(name))

    def full_folder(self) -> str | None:
        return None if has_room(str(self._root)) else str(self._root)

    def events(self, name: str) -> tuple[JournalEvent, ...]:
        try:
            folder = self._folder(check_name(name, new=False), create=False)
        except FileNotFoundError:
            return ()
        try:
            return tuple(_events(folder))
        finally:
            os.close(folder)

    def read_text(self, name: str, file: str) -> str | None:
        """A file that its owner wrote into the instance's folder, None when it is not there."""
        try:
            return (self._path(name) / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def log_files(self, name: str) -> tuple[Path, ...]:
        logs = self._path(check_name(name, new=False)) / "logs"
        try:
            os.close(self._folder(name, create=False))
        except FileNotFoundError:
            return ()
        numbered = [logs / f"{LOG}.{number}" for number in range(9, 0, -1)]
        try:
            return tuple(path for path in (*numbered, logs / LOG) if path.is_file() and not path.is_symlink())
        except OSError as error:
            raise private_files.unusable(str(logs), error) from error

    def log_tail(self, name: str, count: int | None = None) -> tuple[str, ...]:
        return log_tail.tail(self.log_files(name), count)

    def log_follow(self, name: str) -> Callable[[], tuple[str, ...]]:
        return log_tail.Follower(self._path(check_name(name, new=False)) / "logs" / LOG).new_lines

    def _path(self, name: str) -> Path:
        return self._root.joinpath(*_BELOW, name)

    def _folders(self) -> list[str]:
        """The names of what lies beside the instances, sorted; StateError when that cannot be seen."""
        try:
            folder = self._folder(create=False)
        except FileNotFoundError:
            return []
        try:
            return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False))
        except OSError as error:
            raise private_files.unusable(str(self._path("")), error) from error
        finally:
            os.close(folder)

    def _folder(self, *names: str, create: bool) -> int:
        shown = str(self._root)
        descriptor = private_files.private_folder(shown, create=create)
        for part in (*_BELOW, *names):
            shown = os.path.join(shown, part)
            try:
                below = private_files.private_subfolder(descriptor, part, shown, create=create)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor

    def _owned(self, name: str, folder: int, lock: int) -> FileOwnedInstance:
        previous, problem = _read_record(folder)
        owned = FileOwnedInstance(
            name=name,
            path=self._path(name),
            folder=folder,
            lock=lock,
            previous=previous,
            environ=self._environ,
        )
        if problem is not None:
            aside = _set_aside(folder)
            owned.event("record_unreadable", f"the record was set aside as {aside}: {problem}")
        return owned


def _busy(folder: int, name: str) -> Busy:
    record, _ = _read_record(folder)
    pid, _ = signature(folder)
    who = f"pid {pid}" if pid else "another dflashctl"
    doing = f", phase {record.phase.value}" if record else ""
    return Busy(f"instance {name!r} is owned by {who}{doing}", hint=f"dflashctl status {name}")


def _read_record(folder: int) -> tuple[InstanceRecord | None, str | None]:
    """The record, or what is wrong with it; (None, None) when there is none."""
    try:
        content = private_files.read_private(folder, RECORD, _RECORD_LIMIT_BYTES)
        return decode(InstanceRecord, json_loads(content), at="record"), None
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError, RecursionError) as error:
        return None, str(error)


def _is_by_owner(record: InstanceRecord, owner: int | None) -> bool:
    """Whether who holds the lock wrote the record. A new owner may hold it before it has signed with its pid."""
    writer = record.supervisor
    if writer is None or owner != writer.pid:
        return False
    return is_alive(writer) or not is_here(writer)


def _taken_over(record: InstanceRecord, owner: Identity | None) -> InstanceRecord:
    """The lock has a new owner who has not written yet: what the record says is over."""
    return replace(
        record,
        phase=Phase.PREFLIGHT,
        supervisor=owner,
        server=None,
        step=None,
        ready=False,
        healthy=None,
        reason=None,
    )


def _set_aside(folder: int) -> str:
    taken = {name for name in os.listdir(folder) if name.startswith(f"{RECORD}.bad-")}
    name = next(n for n in (f"{RECORD}.bad-{i}" for i in range(1, len(taken) + 2)) if n not in taken)
    try:
        os.replace(RECORD, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as error:
        raise StateError(f"the unreadable record {RECORD} cannot be set aside: {error}") from error
    return name


def _events(folder: int) -> Iterator[JournalEvent]:
    for name in (f"{EVENTS}.3", f"{EVENTS}.2", f"{EVENTS}.1", EVENTS):
        with contextlib.suppress(OSError, ValueError):
            for line in private_files.read_private(folder, name, _EVENTS_LIMIT_BYTES).splitlines():
                with contextlib.suppress(ValueError):
                    yield decode(JournalEvent, json_loads(line))
