"""Result files: runs are appended, every write is whole or not at all."""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING

from dflashctl.core.bench_runs import RUN_FILE_KIND, RUN_FILE_VERSION, BenchResult
from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.replies import mapping, values
from dflashctl.core.report import to_json

if TYPE_CHECKING:
    from pathlib import Path


def read_document(path: Path) -> object:
    """The parsed file; UsageProblem when it cannot be read or is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageProblem(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageProblem(f"{str(path)!r} is not JSON: {error}") from error


def existing(path: Path) -> dict[str, object] | None:
    """What the file holds already, None when there is none; UsageProblem when it is something else."""
    if not path.exists():
        return None
    found = mapping(read_document(path))
    if found.get("kind") != RUN_FILE_KIND or found.get("schema_version") != RUN_FILE_VERSION:
        raise UsageProblem(
            f"{str(path)!r} exists and is no result file that can be appended to",
            hint="choose another file with -o",
        )
    return dict(found)


def save(path: Path, result: BenchResult, before: dict[str, object] | None) -> None:
    """Write `before`'s runs and the new ones; sessions are numbered on."""
    fresh = to_json(result)
    document: dict[str, object] = dict(fresh) if isinstance(fresh, dict) else {}
    if before is not None:
        old_sessions = list(values(before.get("sessions")))
        new_runs = [_renumbered(mapping(run), len(old_sessions)) for run in values(document.get("runs"))]
        document["runs"] = [*values(before.get("runs")), *new_runs]
        document["sessions"] = [*old_sessions, *values(document.get("sessions"))]
    document["path"] = str(path)
    write_text(path, json.dumps(document, ensure_ascii=False) + "\n")


def _renumbered(run: object, offset: int) -> dict[str, object]:
    fields = dict(mapping(run))
    session = fields.get("session")
    return {**fields, "session": offset + (session if isinstance(session, int) else 0)}


def write_text(path: Path, text: str) -> None:
    """Replace the file as a whole; StateError when it cannot be written."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, data: bytes) -> None:
    """Replace the file as a whole; StateError when it cannot be written.

    A device or pipe is written to: replacing it would take it away from everybody.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():
            path.write_bytes(data)
            return
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise StateError(f"{str(path)!r} cannot be written: {error.strerror}") from error
