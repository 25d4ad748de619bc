"""FileOwnedInstance: the one writer of an instance's folder, as long as it holds the lock."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError
from dflashctl.core.instance import ENDED, Identity, InstanceRecord, Phase
from dflashctl.core.report import to_json
from dflashctl.edges import private_files
from dflashctl.edges.instance_lock import LOCK, sign
from dflashctl.edges.places import fresh_runtime_folder, remove_folder, sweep_runtime_folder
from dflashctl.edges.processes import identify

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from typing_extensions import Self

RECORD = "instance.json"
EVENTS = "events.jsonl"
LOG = "server.log"
_EVENTS_BYTES = 8 * 1024 * 1024
_EVENTS_KEPT = 3
_TEXT_LIMIT = 3000


class FileOwnedInstance:
    def __init__(
        self,
        *,
        name: str,
        path: Path,
        folder: int,
        lock: int,
        previous: InstanceRecord | None,
        environ: Mapping[str, str],
    ) -> None:
        self.name = name
        self.folder = path
        self.previous = previous
        self.unclean = previous is not None and previous.phase not in ENDED
        self._environ = environ
        self._descriptor = folder
        self._lock = lock
        self._lost = 0
        self._usurped = False
        self._runtime: Path | None = None
        self._leftovers: tuple[Identity, ...] = previous.sessions if previous else ()
        self._current = InstanceRecord(
            name=name,
            phase=Phase.PREFLIGHT,
            phase_since_s=time.time(),
            started_at_s=time.time(),
            supervisor=identify(os.getpid()),
        )
        os.close(private_files.private_subfolder(folder, "logs", str(path / "logs")))
        self._sweep_temporaries()

    @property
    def log_path(self) -> Path:
        return self.folder / "logs" / LOG

    @property
    def current(self) -> InstanceRecord:
        return self._current

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the lock up; the files stay."""
        if self._runtime is not None and not self._usurped:
            remove_folder(self._runtime)
        self._runtime = None
        if self._lock >= 0:
            os.close(self._lock)
            os.close(self._descriptor)
            self._lock = self._descriptor = -1

    def record(self, record: InstanceRecord) -> None:
        sessions = (*self._leftovers, *(s for s in record.sessions if s not in self._leftovers))
        self._current = replace(record, sessions=sessions, journal_lost_writes=self._lost)
        if self._usurped:
            return
        try:
            private_files.replace_private(
                self._descriptor, RECORD, json.dumps(to_json(self._current)).encode()
            )
        except OSError:
            self._lost += 1

    def enter(self, phase: Phase, text: str) -> None:
        self.record(replace(self._current, phase=phase, phase_since_s=time.time()))
        self.event("phase", text, phase=phase)

    def event(self, kind: str, text: str, *, phase: Phase | None = None, attempt: int | None = None) -> None:
        if self._usurped:
            return
        line = {"at_s": round(time.time(), 3), "kind": kind, "text": text[:_TEXT_LIMIT]}
        more = {"phase": phase.value if phase else None, "attempt": attempt}
        content = json.dumps(line | {key: value for key, value in more.items() if value is not None}) + "\n"
        try:
            self._rotate_events()
            private_files.append_private(self._descriptor, EVENTS, content.encode())
        except OSError:
            self._lost += 1

    def write(self, name: str, text: str) -> Path:
        try:
            private_files.replace_private(self._descriptor, name, text.encode())
        except OSError as error:
            raise StateError(f"'{self.folder / name}' cannot be written: {error}") from error
        return self.folder / name

    def runtime_folder(self) -> Path:
        if self._runtime is None or not self._runtime.is_dir():
            self._runtime = fresh_runtime_folder(self._environ, str(self.folder))
        return self._runtime

    def forget_leftovers(self) -> None:
        self._leftovers = ()
        if self._runtime is None:
            sweep_runtime_folder(self._environ, str(self.folder))

    def lock_descriptor(self) -> int:
        return self._lock

    def still_held(self) -> bool:
        if self._usurped:
            return False
        try:
            found = os.stat(self.folder / LOCK, follow_symlinks=False)
        except OSError:
            self._usurped = not self._restore()
        else:
            self._usurped = not os.path.samestat(found, os.fstat(self._lock))
        return not self._usurped

    def _restore(self) -> bool:
        """Folder and lock were removed: make them again; False when somebody else was quicker or it cannot be done."""
        temporary = f".{LOCK}.{os.getpid()}.tmp"
        opened: list[int] = []
        try:
            opened.append(folder := private_files.private_folder(str(self.folder)))
            os.close(private_files.private_subfolder(folder, "logs", str(self.folder / "logs")))
            lock = private_files.open_private(folder, temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
            opened.append(lock)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            sign(lock, str(self.folder))
            os.link(temporary, LOCK, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except (OSError, StateError):
            if opened:
                _unlink(opened[0], temporary)
            for descriptor in opened:
                os.close(descriptor)
            return False
        _unlink(folder, temporary)
        os.close(self._lock)
        os.close(self._descriptor)
        self._lock, self._descriptor = lock, folder
        self.record(self._current)
        self.event("lock_restored", "the instance's lock had been removed and was made again")
        return True

    def _rotate_events(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if os.stat(EVENTS, dir_fd=self._descriptor, follow_symlinks=False).st_size > _EVENTS_BYTES:
                private_files.rotate(self._descriptor, EVENTS, _EVENTS_KEPT)

    def _sweep_temporaries(self) -> None:
        for name in os.listdir(self._descriptor):
            if name.endswith(".tmp"):
                _unlink(self._descriptor, name)


def _unlink(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)
