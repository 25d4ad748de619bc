"""FileProfileStore: profiles in ./profiles, the user's configuration folder and the package, in that order."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from dflashctl.core.errors import ProfileError
from dflashctl.core.load import Problem, load
from dflashctl.core.profile import BUILTIN, Profile
from dflashctl.core.profile_rules import profile_problems
from dflashctl.edges.shipped import shipped_folder
from dflashctl.ports.profiles import LoadedProfile, ProfileFile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dflashctl.core.node import Node

REFERENCE = "reference"
_ENDINGS = (".yaml", ".yml")


class FileProfileStore:
    def __init__(self, *, cwd: Path, environ: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._environ = environ

    def list(self) -> tuple[ProfileFile, ...]:
        found: dict[str, ProfileFile] = {}
        for origin, folder in self._folders():
            for path in _profiles_in(folder):
                old = found.get(path.stem)
                if old is None:
                    found[path.stem] = ProfileFile(name=path.stem, path=path, origin=origin)
                elif path.resolve() != old.path.resolve():
                    shadows = (*old.shadows, path)
                    found[path.stem] = ProfileFile(
                        name=old.name, path=old.path, origin=old.origin, shadows=shadows
                    )
        return tuple(sorted(found.values(), key=lambda f: f.name))

    def find(self, name: str) -> ProfileFile:
        if os.sep in name or name.endswith(_ENDINGS):
            return self._file(self._cwd / Path(name).expanduser(), name)
        for origin, folder in self._folders():
            for ending in _ENDINGS:
                path = folder / f"{name}{ending}"
                if os.path.exists(path):  # unlike Path.exists, False in a folder that may not be read
                    return ProfileFile(name=name, path=path, origin=origin)
        raise self._no_such(name)

    def read_text(self, file: ProfileFile) -> str:
        try:
            return file.path.read_text(encoding="utf-8")
        except IsADirectoryError as error:
            raise ProfileError(
                f"profile {str(file.path)!r} is a folder", hint="name the file in it"
            ) from error
        except UnicodeDecodeError as error:
            raise ProfileError(
                f"profile {str(file.path)!r} is not UTF-8 text (byte {error.start})", hint="save it as UTF-8"
            ) from error
        except OSError as error:
            raise ProfileError(f"profile {str(file.path)!r} cannot be read: {error.strerror}") from error

    def load(self, name: str, overrides: Sequence[tuple[str, str, str]] = ()) -> LoadedProfile:
        from dflashctl.edges.yaml_node import parse

        file = self.find(name)
        if file.name == REFERENCE:
            raise ProfileError(
                "'reference' is the commented schema, not a profile to run",
                hint="dflashctl profile show reference",
            )
        root = parse(self.read_text(file), name=_short(file.path, self._cwd))
        root, origins = _overridden(root, overrides)
        profile = _checked(root, file.name)
        return LoadedProfile(profile=profile, file=file, origins=MappingProxyType(origins))

    def model_path(self, file: ProfileFile, path: str) -> Path:
        if path.startswith(BUILTIN):
            return Path(__file__).resolve().parent.parent / "reference" / path.removeprefix(BUILTIN)
        # By its words alone: whether the disk that it names answers is for others to ask.
        return Path(os.path.abspath(file.path.resolve().parent / Path(path).expanduser()))

    def _folders(self) -> Iterator[tuple[str, Path]]:
        yield "here", self._cwd / "profiles"
        yield "user", self._user_folder() / "profiles"
        yield "shipped", shipped_folder("profiles")

    def _user_folder(self) -> Path:
        explicit = self._environ.get("DFLASHCTL_CONFIG_DIR")
        if explicit:
            return Path(explicit)
        base = self._environ.get("XDG_CONFIG_HOME") or str(
            Path(self._environ.get("HOME", "~")).expanduser() / ".config"
        )
        return Path(base) / "dflashctl"

    def _file(self, path: Path, name: str) -> ProfileFile:
        if os.path.isdir(path):
            raise ProfileError(f"profile {name!r} is a folder", hint=f"name a file in it: {_example(path)}")
        try:
            path.stat()
        except PermissionError as error:
            raise ProfileError(
                f"profile {name!r} cannot be read: {error.strerror}",
                hint="give this user the right to read it and to enter the folders above it",
            ) from error
        except OSError as error:
            raise ProfileError(f"there is no profile file {name!r}", hint="dflashctl profile list") from error
        return ProfileFile(name=path.stem, path=path, origin="file")

    def _no_such(self, name: str) -> ProfileError:
        names = [f.name for f in self.list() if f.name != REFERENCE]
        near = get_close_matches(name, names, n=3, cutoff=0.4)
        advice = (
            f"did you mean {' or '.join(repr(n) for n in near)}?" if near else f"there are {', '.join(names)}"
        )
        return ProfileError(f"there is no profile {name!r}; {advice}", hint="dflashctl profile list")


def _profiles_in(folder: Path) -> list[Path]:
    try:
        return sorted(p for p in folder.iterdir() if p.suffix in _ENDINGS and os.path.isfile(p))
    except OSError:
        return []


def _example(folder: Path) -> str:
    inside = _profiles_in(folder)
    return str(inside[0]) if inside else "it holds no .yaml file"


def _short(path: Path, cwd: Path) -> str:
    try:
        return str(path.relative_to(cwd))
    except ValueError:
        return str(path)


def _overridden(root: Node, overrides: Sequence[tuple[str, str, str]]) -> tuple[Node, dict[str, str]]:
    from dflashctl.edges.yaml_node import parse_value

    origins = {}
    for path, text, origin in overrides:
        root = root.with_field(tuple(path.split(".")), parse_value(text, name=origin))
        origins[path] = origin
    return root, origins


def _checked(root: Node, name: str) -> Profile:
    profile, problems = load(root, Profile, extra={"name": name})
    if profile is not None:
        problems = (*problems, *profile_problems(profile, root))
    if profile is None or problems:
        raise ProfileError(_told(name, problems), hint="dflashctl profile show reference")
    return profile


def _told(name: str, problems: tuple[Problem, ...]) -> str:
    if len(problems) == 1:
        return str(problems[0])
    lines = "\n".join(f"  {problem}" for problem in problems)
    return f"profile {name!r} has {len(problems)} problems:\n{lines}"
