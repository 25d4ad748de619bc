"""Selection: which files of a repository serving needs, and why the others stay away."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from dflashctl.core.model_files import CONFIG, INDEX, CodeFile, ModelFile

if TYPE_CHECKING:
    from collections.abc import Collection

    from dflashctl.core.profile import ModelRef

PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".joblib", ".dill", ".npy", ".npz")
_OTHER_FORMATS = (".h5", ".msgpack", ".onnx", ".gguf", ".ggml", ".tflite", ".mlmodel", ".ot", ".pb")
_NEEDED_ENDINGS = (".json", ".jinja", ".model", ".tiktoken", ".txt", ".vocab", ".merges")
_NEEDED_FOLDERS = ("", "additional_chat_templates", "chat_templates", "tokenizer")
_WILD = frozenset("*?[")
_SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d+)-of-(?P<count>\d+)\.safetensors")
_MOST_SHARDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Selection:
    """`chosen` in the order of the listing; `left_out` are (path, reason); `code` are the chosen Python files."""

    chosen: tuple[ModelFile, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    code: tuple[CodeFile, ...] = ()


def choose(files: tuple[ModelFile, ...], ref: ModelRef, indexed: Collection[str] | None = None) -> Selection:
    """The files that serving `ref` needs.

    `indexed` are the shards that the safetensors index names; other safetensors files are duplicates then.
    `allow_patterns` of the profile add files to this choice, `ignore_patterns` take files away. A pickled file
    is taken only when `allow_patterns` names it literally.
    """
    chosen: list[ModelFile] = []
    left_out: list[tuple[str, str]] = []
    for file in files:
        reason = _reason_against(file.path, ref, indexed)
        if reason is None:
            chosen.append(file)
        else:
            left_out.append((file.path, reason))
    code = tuple(CodeFile(path=f.path, sha256=f.sha256) for f in chosen if f.path.endswith(".py"))
    return Selection(chosen=tuple(chosen), left_out=tuple(left_out), code=code)


def missing_shards(files: tuple[ModelFile, ...], indexed: Collection[str]) -> tuple[str, ...]:
    """Shards that the index names and the listing lacks."""
    there = {file.path for file in files}
    return tuple(sorted(set(indexed) - there))


def lacking_shards(
    files: tuple[ModelFile, ...], ref: ModelRef, indexed: Collection[str] | None
) -> tuple[str, ...]:
    """Shards that a listing or lock lacks: of those that the index names, without one of those that the names count.

    What the profile ignores is no shard of its.
    """
    wanted = set(indexed) if indexed is not None else _counted(files)
    wanted = {p for p in wanted if not any(fnmatchcase(p, pattern) for pattern in ref.ignore_patterns)}
    return missing_shards(files, wanted)


def _counted(files: tuple[ModelFile, ...]) -> set[str]:
    """All N names of each set `…-00001-of-0000N.safetensors` of which one is there."""
    found: set[str] = set()
    for match in (_SHARD.fullmatch(f.path) for f in files):
        if match is not None and int(match["count"]) <= _MOST_SHARDS:
            width = len(match["number"])
            found |= {
                f"{match['stem']}-{n:0{width}}-of-{match['count']}.safetensors"
                for n in range(1, int(match["count"]) + 1)
            }
    return found


def has_index(files: tuple[ModelFile, ...]) -> bool:
    return any(file.path == INDEX for file in files)


def _reason_against(path: str, ref: ModelRef, indexed: Collection[str] | None) -> str | None:
    if any(fnmatchcase(path, pattern) for pattern in ref.ignore_patterns) and path != CONFIG:
        return "ignored by the profile"
    if path.endswith(PICKLED):
        named = path in {p for p in ref.allow_patterns if not _WILD & set(p)}
        return None if named else "pickled files can run code; name it in allow_patterns to take it"
    if any(fnmatchcase(path, pattern) for pattern in ref.allow_patterns):
        return None
    if path.endswith(".py"):
        return None if ref.trust_remote_code else "code, and trust_remote_code is off"
    if path.endswith(".safetensors"):
        return _reason_against_weights(path, indexed)
    return _reason_against_other(path)


def _reason_against_weights(path: str, indexed: Collection[str] | None) -> str | None:
    if indexed is not None:
        return None if path in indexed else "not named by the safetensors index"
    return None if "/" not in path else "weights in a subfolder, and there is no index that names them"


def _reason_against_other(path: str) -> str | None:
    folder, name = posixpath.split(path)
    if name.endswith(_OTHER_FORMATS):
        return "the same weights in another format"
    if name.startswith("."):
        return "not needed for serving"
    if folder in _NEEDED_FOLDERS and name.endswith(_NEEDED_ENDINGS):
        return None
    return "not needed for serving"
