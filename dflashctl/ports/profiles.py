"""ProfileStore: where profiles are found and how they are read."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dflashctl.core.profile import Profile

_SET = "--set "


@dataclass(frozen=True, kw_only=True)
class ProfileFile:
    """A profile that exists: `origin` is "here", "user" or "shipped", "file" for one that was named by its path.

    `shadows` are same-named ones behind it.
    """

    name: str
    path: Path
    origin: str
    shadows: tuple[Path, ...] = ()

    @property
    def word(self) -> str:
        """What names it on a command line."""
        return str(self.path) if self.origin == "file" else self.name


@dataclass(frozen=True, kw_only=True)
class LoadedProfile:
    """`origins` maps a profile path to the option that set it, for those not from the file."""

    profile: Profile
    file: ProfileFile
    origins: Mapping[str, str]

    @property
    def words(self) -> str:
        """What names it on a command line, with the `--set` options that it was loaded with."""
        sets = [origin for origin in self.origins.values() if origin.startswith(_SET)]
        return " ".join((self.file.word, *(f"{_SET}{shlex.quote(s.removeprefix(_SET))}" for s in sets)))

    def overrides(self, section: str) -> bool:
        """Whether an option changed anything of that section of the profile."""
        return any(path.split(".")[0] == section for path in self.origins)


class ProfileStore(Protocol):
    def list(self) -> tuple[ProfileFile, ...]:
        """All profiles by name, the first found of each name winning."""

    def find(self, name: str) -> ProfileFile:
        """The file of a name or path; ProfileError with the nearest names."""

    def read_text(self, file: ProfileFile) -> str: ...

    def load(self, name: str, overrides: Sequence[tuple[str, str, str]] = ()) -> LoadedProfile:
        """The profile with overrides (path, YAML value, origin) applied; ProfileError lists every problem."""

    def model_path(self, file: ProfileFile, path: str) -> Path:
        """The absolute folder of a local model path (beside the profile, absolute, `~`, or `builtin:`)."""
