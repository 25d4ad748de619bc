"""FileWeightStore: model files on local disks: cheap checks, proofs, locks and bad files set aside."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import Permanent, StateError
from dflashctl.core.model_files import CONFIG, FileReport, ModelFile
from dflashctl.core.safetensors_header import shapes_of_header
from dflashctl.core.weights import DiskRoom
from dflashctl.core.weights_lock import Lock, dump, parse
from dflashctl.edges.file_look import look_at, safetensors_header
from dflashctl.edges.hashing import PoolHasher
from dflashctl.edges.hub_cache import LOCK_FLAGS, has_its_name
from dflashctl.edges.places import state_folder
from dflashctl.edges.private_files import unusable
from dflashctl.edges.proven_files import ProvenFiles, write_whole
from dflashctl.edges.set_aside import set_aside
from dflashctl.edges.silent import nearest, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SMALL_BYTES = 64 * 1024 * 1024


class FileWeightStore:
    def __init__(self, *, environ: Mapping[str, str]) -> None:
        self._state = state_folder(environ)
        self._silent: set[Path] = set()

    @cached_property
    def _proven(self) -> ProvenFiles:
        return ProvenFiles(self._state / "verified.json")

    def answers(self, folder: Path) -> bool:
        if folder not in self._silent and silent([str(folder)]):
            self._silent.add(folder)
        return folder not in self._silent

    def look(self, folder: Path, files: tuple[ModelFile, ...]) -> tuple[FileReport, ...]:
        return tuple(look_at(folder / file.path, file, self._proven.sha256) for file in files)

    def local_files(self, folder: Path) -> tuple[ModelFile, ...]:
        if not os.path.isdir(folder):
            raise Permanent(f"there is no model folder {str(folder)!r}", hint="check the path in the profile")
        if not os.path.exists(folder / CONFIG):
            raise Permanent(
                f"{str(folder)!r} has no {CONFIG}{_other_layout(folder)}", hint="name the folder that has it"
            )
        found = []
        for place, folders, names in os.walk(folder):
            folders[:] = [f for f in folders if not f.startswith(".")]
            found += [_local_file(folder, Path(place) / name) for name in names]
        return tuple(sorted((f for f in found if f is not None), key=lambda f: f.path))

    def read_bytes(self, path: Path) -> bytes | None:
        try:
            with path.open("rb") as stream:
                return stream.read(_SMALL_BYTES)
        except OSError:
            return None

    def tensor_shape(self, path: Path, tensor: str) -> tuple[int, ...] | None:
        header = safetensors_header(path)
        return shapes_of_header(header).get(tensor) if header is not None else None

    @contextlib.contextmanager
    def hasher(self) -> Iterator[PoolHasher]:
        try:
            with PoolHasher(self._remember) as pool:
                yield pool
        finally:
            self._proven.save()

    def set_aside(self, folder: Path, report: FileReport) -> Path | None:
        return set_aside(folder, report.file.path)

    def is_as_fetched(self, folder: Path, report: FileReport) -> bool:
        return has_its_name(folder / report.file.path)

    def room(self, path: Path) -> DiskRoom:
        there = nearest(path.absolute())
        numbers = os.statvfs(there)
        return DiskRoom(
            path=str(path),
            mount=str(_mount_of(there)),
            free_bytes=numbers.f_bavail * numbers.f_frsize,
            free_files=numbers.f_favail if numbers.f_files else None,
            writable=os.path.isdir(there)
            and os.access(there, os.W_OK | os.X_OK)
            and not numbers.f_flag & os.ST_RDONLY,
        )

    @contextlib.contextmanager
    def exclusive(self, cache: Path, repo: str, waiting: Callable[[str], None]) -> Iterator[None]:
        folder = cache / ".locks" / f"models--{repo.replace('/', '--')}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(folder / "dflashctl.lock", LOCK_FLAGS, 0o664)
        except OSError as error:
            raise Permanent(
                f"the cache's lock {str(folder / 'dflashctl.lock')!r} cannot be taken: {error.strerror}",
                hint="it must be a plain file that you may write: remove a link, or set HF_HUB_CACHE to another cache",
            ) from error
        try:
            _wait_for(descriptor, waiting)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
            yield
        finally:
            os.close(descriptor)

    def find_lock(self, profile_path: Path, *, shipped: bool) -> tuple[Path, Lock] | None:
        beside, stored = self._lock_paths(profile_path, shipped=shipped)
        for path in (stored, beside) if shipped else (beside, stored):
            try:
                text = _lock_text(path)
            except NotADirectoryError as error:
                folder = path.parent if self._state.is_dir() else self._state
                raise unusable(str(folder), error) from error
            if text is not None:
                return path, parse(text, where=str(path))
        return None

    def write_lock(self, profile_path: Path, lock: Lock, *, shipped: bool) -> Path:
        beside, stored = self._lock_paths(profile_path, shipped=shipped)
        text = dump(lock)
        if not shipped:
            with contextlib.suppress(OSError):  # read-only: the state folder takes it
                write_whole(beside, text, 0o644)
                return beside
        try:
            write_whole(stored, text, 0o644)
        except OSError as error:
            raise StateError(f"the lock {str(stored)!r} cannot be written: {error.strerror}") from error
        return stored

    def rate(self) -> float | None:
        try:
            return float((self._state / "fetch-rate").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def remember_rate(self, bytes_per_s: float) -> None:
        with contextlib.suppress(OSError):  # only an estimate is lost
            write_whole(self._state / "fetch-rate", f"{bytes_per_s:.0f}\n")

    def _remember(self, path: Path, sha256: str) -> None:
        with contextlib.suppress(OSError):  # gone again: nothing to remember
            self._proven.remember(path.stat(), sha256)

    def _lock_paths(self, profile_path: Path, *, shipped: bool) -> tuple[Path, Path]:
        """Beside the profile and in the state folder; for a shipped profile the state folder's wins."""
        beside = profile_path.with_name(f"{profile_path.stem}.lock.json")
        stored = self._state / "locks" / beside.name
        if not shipped:
            stored = stored.with_name(f"{_short_hash(profile_path)}-{beside.name}")
        return (beside, stored)


def _lock_text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise Permanent(
            f"the lock {str(path)!r} cannot be read", hint="remove it", detail=str(error)
        ) from error


def _local_file(folder: Path, path: Path) -> ModelFile | None:
    try:
        size = path.stat().st_size
    except OSError:
        size = -1  # a dangling link: look() tells
    return ModelFile(path=path.relative_to(folder).as_posix(), size_bytes=size)


def _other_layout(folder: Path) -> str:
    snapshots = sorted(folder.glob("snapshots/*")) or sorted(folder.glob("models--*/snapshots/*"))
    snapshots = snapshots or sorted(folder.glob("hub/models--*/snapshots/*"))
    return f"; it is a hub cache, whose model folders are {snapshots[0]} and the like" if snapshots else ""


def _mount_of(path: Path) -> Path:
    place = path.resolve()
    while not os.path.ismount(place):
        place = place.parent
    return place


def _wait_for(descriptor: int, waiting: Callable[[str], None]) -> None:
    told = False
    while not _locked(descriptor):
        if not told:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            waiting(holder or "unknown")
            told = True
        time.sleep(0.2)


def _locked(descriptor: int) -> bool:
    """Also true where the filesystem has no locks: the library's own temporary names keep transfers apart there."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _short_hash(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:8]
