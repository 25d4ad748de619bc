"""Result files: runs are appended, every write is whole or not at all."""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dflashctl.core.bench_runs import RUN_FILE_KIND, RUN_FILE_VERSION, BenchResult
from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.json_text import json_loads
from dflashctl.core.replies import mapping, values
from dflashctl.core.report import to_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# A path that is no UTF-8 stands in JSON as the escape that reads back as the same path.
_NO_TEXT = "backslashreplace"


def read_document(path: Path) -> object:
    """The parsed file; UsageProblem when it cannot be read or is not JSON."""
    try:
        return json_loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageProblem(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageProblem(f"{str(path)!r} is not JSON: {error}") from error


@dataclass
class Kept:
    """The runs of this call that are in the file already, so that the next save replaces those and no others."""

    runs: list[str] = field(default_factory=list)


def existing(path: Path) -> Kept:
    """A start for `save`; UsageProblem when the file exists and is no result file."""
    _runs_in(path)
    return Kept()


def _runs_in(path: Path) -> dict[str, object]:
    """The result file as it is now, empty when there is none."""
    if not os.path.exists(path):
        return {}
    found = mapping(read_document(path))
    if found.get("kind") != RUN_FILE_KIND or found.get("schema_version") != RUN_FILE_VERSION:
        raise UsageProblem(
            f"{str(path)!r} exists and is no result file that can be appended to",
            hint="choose another file with -o",
        )
    return dict(found)


def save(path: Path, result: BenchResult, kept: Kept | None = None) -> None:
    """Put the runs of `result` behind those of others, which another benchmark may have added a moment ago.

    The file is read again and replaced under a lock. `kept` remembers which of its runs are ours.
    """
    kept = Kept() if kept is None else kept
    fresh = to_json(result)
    document: dict[str, object] = dict(fresh) if isinstance(fresh, dict) else {}
    own = list(values(document.get("runs")))
    with _locked(path):
        runs, sessions = _of_others(_runs_in(path), kept)
        mine = [_renumbered(run, lambda old: old + len(sessions)) for run in own]
        document["runs"] = [*runs, *mine]
        document["sessions"] = [*sessions, *values(document.get("sessions"))]
        document["path"] = str(path)
        write_text(path, json.dumps(document, ensure_ascii=False) + "\n")
    kept.runs = [_content(run) for run in mine]


def _of_others(found: dict[str, object], kept: Kept) -> tuple[list[object], list[object]]:
    """The file's runs and sessions without ours, numbered anew."""
    own = set(kept.runs)
    runs = list(values(found.get("runs")))
    ours = {_session(run) for run in runs if _content(run) in own}
    theirs = [run for run in runs if _content(run) not in own]
    needed = {_session(run) for run in theirs}
    sessions = list(values(found.get("sessions")))
    left = [index for index in range(len(sessions)) if index in needed or index not in ours]
    number = {old: new for new, old in enumerate(left)}
    return [_renumbered(run, lambda old: number.get(old, old)) for run in theirs], [
        sessions[index] for index in left
    ]


def _session(run: object) -> int:
    session = mapping(run).get("session")
    return session if isinstance(session, int) else 0


def _renumbered(run: object, number: Callable[[int], int]) -> dict[str, object]:
    return {**mapping(run), "session": number(_session(run))}


def _content(run: object) -> str:
    """A run by all that was measured, whatever the session's number in the file."""
    return json.dumps({**mapping(run), "session": None}, sort_keys=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Alone with the file: a lock on one beside it, since the file itself is replaced. It waits for another save."""
    beside = path.with_name(f".{path.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = _own_lock(beside)
    except OSError as error:
        raise StateError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        with suppress(OSError):
            beside.unlink()
        os.close(descriptor)


def _own_lock(beside: Path) -> int:
    """The locked file, taken again where its last owner has removed it meanwhile."""
    while True:
        descriptor = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        with suppress(OSError):  # a file system without locks: as good as it goes
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            same = os.path.samestat(os.fstat(descriptor), beside.stat())
        except FileNotFoundError:
            same = False
        if same:
            return descriptor
        os.close(descriptor)


def append_text(path: Path, text: str) -> None:
    """Write after what the file holds, in one go; StateError when it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(text.encode(errors=_NO_TEXT))
    except OSError as error:
        raise StateError(f"{str(path)!r} cannot be written: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    """Replace the file as a whole; StateError when it cannot be written."""
    write_bytes(path, text.encode(errors=_NO_TEXT))


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file as a whole; StateError when it cannot be written.

    A device or pipe is written to: replacing it would take it away from everybody.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.exists(path) and not os.path.isfile(path):
            path.write_bytes(data)
            return
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise StateError(f"{str(path)!r} cannot be written: {error.strerror}") from error
