"""Builds: tells a known release of SGLang from a changed build, which must be asked for its options."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.engine import EngineBuild, FoundEngine
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.options import from_dump
from dflashctl.engines.sglang.runs import number

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_HERE = Path(__file__).parent
IDENTIFY = _HERE / "identify.py"
INTROSPECT = _HERE / "introspect.py"
UNKNOWN = "unknown"


def found(answer: str, python: str | None, /) -> FoundEngine | None:
    """What identify.py answered; None when there is no SGLang; ValueError for anything else."""
    said: Mapping[str, Any] = json.loads(answer)
    if not isinstance(said, dict) or "version" not in said:
        raise ValueError(answer[:200])
    if said["version"] is None:
        return None
    return FoundEngine(build=_recognised(said, python), cache_key=_cache_key(said), root=said.get("root"))


def _recognised(said: Mapping[str, Any], python: str | None) -> EngineBuild:
    """`known` when version and command-line sources are those of a released wheel."""
    version = str(said["version"])
    release = _release(version)
    same = said.get("parser") == catalogue.parser_hash(version)
    return EngineBuild(
        release=release,
        python=python,
        known=version in catalogue.releases() and same,
        local_version=None if version == release else version,
        installed=True,
    )


def _cache_key(said: Mapping[str, Any]) -> str:
    record = said.get("record")
    parts = (said["version"], record, said.get("parser"), None if record else said.get("root"))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def with_sources(dump: str, root: Path | None, /) -> str:
    """The answer of introspect.py with the draft hooks of the build's model classes, as far as they can be read."""
    said = json.loads(dump.splitlines()[-1])
    if root is not None:
        from dflashctl.engines.sglang import scan

        try:
            said["model_hooks"] = scan.models(root / "srt" / "models")
        except (OSError, SyntaxError):
            said["model_hooks"] = {}
    return json.dumps(said)


def with_options(build: EngineBuild, dump: str, /) -> EngineBuild:
    """The build with the options that introspect.py found; the build itself when the answer is broken."""
    try:
        said = json.loads(dump.splitlines()[-1])
        options = tuple(from_dump(option) for option in said["options"])
    except (ValueError, LookupError, TypeError):
        return build
    hooks = said.get("model_hooks") or {}
    return replace(
        build,
        options=options,
        model_hooks=tuple((name, tuple(kinds)) for name, kinds in hooks.items()) or None,
    )


def _release(version: str) -> str:
    numbers = number(version)
    complete = len(numbers) == len(number(catalogue.newest()))
    return ".".join(map(str, numbers)) if complete else catalogue.newest()
