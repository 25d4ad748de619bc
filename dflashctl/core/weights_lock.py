"""The lock: which bytes a profile means, file by file, so that every later start is held to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dflashctl.core.errors import Permanent
from dflashctl.core.json_text import json_loads
from dflashctl.core.model_files import CodeFile, ModelFile

if TYPE_CHECKING:
    from dflashctl.core.profile import ModelRef

LOCK_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class LockedModel:
    """One model as it was fetched; `code` are the Python files that were agreed to run."""

    source: str
    commit: str | None
    files: tuple[ModelFile, ...]
    trust_remote_code: bool = False
    allow_patterns: tuple[str, ...] = ()
    ignore_patterns: tuple[str, ...] = ()

    @property
    def code(self) -> tuple[CodeFile, ...]:
        return tuple(CodeFile(path=f.path, sha256=f.sha256) for f in self.files if f.path.endswith(".py"))


@dataclass(frozen=True, kw_only=True)
class Lock:
    """`target` and `draft` are what the profile itself names, `others` what options put in their place.

    A plan is held to the entry of its own revision, so that one with `--set target.revision=…` and one without
    stand beside each other.
    """

    profile: str
    target: LockedModel | None = None
    draft: LockedModel | None = None
    others: tuple[LockedModel, ...] = ()

    def own(self, role: str) -> LockedModel | None:
        """The entry of the profile itself for "target" or "draft"."""
        return self.target if role == "target" else self.draft

    def fitting(self, role: str, ref: ModelRef) -> LockedModel | None:
        """The entry that stands for `ref`, the profile's own first."""
        return next((e for e in (self.own(role), *self.others) if e and difference(ref, e) is None), None)

    def with_entry(self, role: str, ref: ModelRef, entry: LockedModel, *, own: bool) -> Lock:
        """The lock that knows `entry` for `ref`; `own` when the profile itself names it, and no option does."""
        mine = self.own(role)
        others = tuple(e for e in self.others if difference(ref, e) is not None)
        if not own and (mine is None or difference(ref, mine) is not None):
            return replace(self, others=(*others, entry))
        if role == "target":
            return replace(self, target=entry, others=others)
        return replace(self, draft=entry, others=others)


def locked(ref: ModelRef, commit: str | None, files: tuple[ModelFile, ...]) -> LockedModel:
    """The entry for `ref` as it lies on disk, verified."""
    return LockedModel(
        source=ref.label,
        commit=commit,
        files=files,
        trust_remote_code=ref.trust_remote_code,
        allow_patterns=ref.allow_patterns,
        ignore_patterns=ref.ignore_patterns,
    )


def difference(ref: ModelRef, entry: LockedModel) -> str | None:
    """Why `entry` does not stand for `ref`, None when it does. A branch name in the profile fits any commit."""
    if ref.label != entry.source:
        return f"the profile names {ref.label}, the lock {entry.source}"
    if ref.revision and entry.commit and is_commit(ref.revision) and ref.revision != entry.commit:
        return f"the profile names commit {ref.revision}, the lock {entry.commit}"
    if ref.trust_remote_code != entry.trust_remote_code:
        return f"trust_remote_code is {_yes(ref.trust_remote_code)} in the profile, {_yes(entry.trust_remote_code)} in the lock"
    for name in ("allow_patterns", "ignore_patterns"):
        if getattr(ref, name) != getattr(entry, name):
            return f"{name} changed since the lock was written"
    return None


def code_changes(old: LockedModel | None, new: tuple[CodeFile, ...]) -> tuple[str, ...]:
    """Python files that were not agreed to before, as "path (new|changed|gone)"; nothing for a first fetch."""
    if old is None or not old.trust_remote_code:
        return ()
    before = {c.path: c.sha256 for c in old.code}
    after = {c.path: c.sha256 for c in new}
    changed = [(p, "new") for p in after if p not in before]
    changed += [(p, "gone") for p in before if p not in after]
    changed += [(p, "changed") for p in after if p in before and before[p] != after[p]]
    return tuple(f"{path} ({what})" for path, what in sorted(changed))


def is_commit(revision: str | None) -> bool:
    """Whether `revision` is a full commit, in lower case."""
    return revision is not None and len(revision) == 40 and set(revision) <= set("0123456789abcdef")  # noqa: PLR2004


def dump(lock: Lock) -> str:
    """The lock as JSON text, the same for the same content."""
    models: dict[str, object] = {
        role: _entry(own) for role, own in (("target", lock.target), ("draft", lock.draft)) if own is not None
    }
    if lock.others:
        models["others"] = [_entry(e) for e in sorted(lock.others, key=lambda e: (e.source, e.commit or ""))]
    return json.dumps({"lock_version": LOCK_VERSION, "profile": lock.profile, **models}, indent=1) + "\n"


def parse(text: str, *, where: str) -> Lock:
    """The lock from its text; Permanent names `where` when it is damaged or from a newer dflashctl."""
    try:
        data = json_loads(text)
        if data["lock_version"] != LOCK_VERSION:
            raise Permanent(
                f"the lock {where!r} has version {data['lock_version']}, this dflashctl reads {LOCK_VERSION}",
                hint="update dflashctl, or remove the lock and fetch again",
            )
        return _lock(data)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Permanent(
            f"the lock {where!r} is damaged",
            hint="remove it and fetch again",
            detail=f"{type(error).__name__}: {error}",
        ) from error


def _lock(data: dict[str, Any]) -> Lock:
    own = {role: _model(data[role]) for role in ("target", "draft") if data.get(role) is not None}
    others = tuple(_model(entry) for entry in data.get("others", ()))
    if "target" not in own and not others:
        raise KeyError("target")
    return Lock(profile=str(data["profile"]), target=own.get("target"), draft=own.get("draft"), others=others)


def _entry(model: LockedModel) -> dict[str, object]:
    return {
        "source": model.source,
        "commit": model.commit,
        "trust_remote_code": model.trust_remote_code,
        "allow_patterns": list(model.allow_patterns),
        "ignore_patterns": list(model.ignore_patterns),
        "files": [_file(f) for f in sorted(model.files, key=lambda f: f.path)],
    }


def _file(file: ModelFile) -> dict[str, object]:
    git = {"git_sha1": file.git_sha1} if file.git_sha1 else {}
    return {"path": file.path, "size_bytes": file.size_bytes, "sha256": file.sha256, **git}


def _model(data: dict[str, object]) -> LockedModel:
    files = data["files"]
    if not isinstance(files, list):
        raise TypeError("files is not a list")
    return LockedModel(
        source=str(data["source"]),
        commit=None if data["commit"] is None else str(data["commit"]),
        trust_remote_code=bool(data["trust_remote_code"]),
        allow_patterns=_words(data["allow_patterns"]),
        ignore_patterns=_words(data["ignore_patterns"]),
        files=tuple(_model_file(f) for f in files),
    )


def _model_file(data: dict[str, object]) -> ModelFile:
    size, sha256, git_sha1 = data["size_bytes"], data["sha256"], data.get("git_sha1")
    path = str(data["path"])
    if not isinstance(size, int) or not is_safe_path(path) or not isinstance(sha256, str):
        raise TypeError(f"{path!r} is not a file entry")
    return ModelFile(path=path, size_bytes=size, sha256=sha256, git_sha1=str(git_sha1) if git_sha1 else None)


def is_safe_path(path: str) -> bool:
    """Whether `path` stays inside its model: relative, without `..`, and one line."""
    parts = path.split("/")
    return bool(path) and "\\" not in path and "\0" not in path and not {"", ".", ".."} & set(parts)


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("patterns are not a list")
    return tuple(str(v) for v in value)


def _yes(value: bool) -> str:
    return "on" if value else "off"
