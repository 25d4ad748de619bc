"""Reads what an SGLang release's sources tell without importing them: models, environment variables, log lines."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

HOOKS = {"dflash": "set_dflash_layers_to_capture", "dspark": "set_dspark_layers_to_capture"}
_READ = re.compile(
    r"""(?:environ(?:\.get)?[\(\[]|getenv\(|get_bool_env_var\(|get_int_env_var\(|get_float_env_var\()\s*["'](SGL[A-Z0-9_]+)["']"""
    r"""|envs\.(SGL[A-Z0-9_]+)"""
)
_DECLARED = re.compile(r"^\s+(SGL[A-Z0-9_]+)\s*(?::[^=\n]+)?=\s*Env", re.MULTILINE)


def sources(package: Path) -> Iterator[tuple[Path, str]]:
    """Every Python file of the serving runtime with its text; tests are left out."""
    for path in sorted(package.rglob("*.py")):
        if "test" not in path.relative_to(package).parts:
            yield path, path.read_text(encoding="utf-8-sig", errors="replace")


def environment(texts: Mapping[Path, str]) -> frozenset[str]:
    """SGLANG_* and SGL_* variables that the release reads or declares."""
    found: set[str] = set()
    for path, text in texts.items():
        found.update(a or b for a, b in _READ.findall(text))
        if path.name == "environ.py":
            found.update(_DECLARED.findall(text))
    return frozenset(found)


def models(folder: Path) -> dict[str, tuple[str, ...]]:
    """Entry classes of `srt/models` with the capture hooks each has, inherited ones included."""
    methods: dict[str, frozenset[str]] = {}
    bases: dict[str, tuple[str, ...]] = {}
    entries: set[str] = set()
    for path in sorted(folder.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8-sig", errors="replace"))
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                methods[node.name] = frozenset(_defined(node))
                bases[node.name] = tuple(_name(base) for base in node.bases)
            elif isinstance(node, ast.Assign):
                entries.update(_entries(node))
    return {
        entry: tuple(kind for kind, hook in HOOKS.items() if hook in _all_methods(entry, methods, bases))
        for entry in sorted(entries)
    }


def containing(texts: Mapping[Path, str], literals: tuple[str, ...]) -> tuple[str, ...]:
    """Which of `literals` occur anywhere in the sources."""
    return tuple(literal for literal in literals if any(literal in text for text in texts.values()))


def _defined(node: ast.ClassDef) -> Iterator[str]:
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield item.name
        elif isinstance(item, ast.Assign):
            yield from (target.id for target in item.targets if isinstance(target, ast.Name))


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _entries(node: ast.Assign) -> Iterator[str]:
    if any(isinstance(target, ast.Name) and target.id == "EntryClass" for target in node.targets):
        value = node.value
        items = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
        yield from filter(None, map(_name, items))


def _all_methods(
    name: str, methods: Mapping[str, frozenset[str]], bases: Mapping[str, tuple[str, ...]], depth: int = 8
) -> frozenset[str]:
    own = methods.get(name, frozenset())
    if depth == 0:
        return own
    return own.union(
        *(_all_methods(base, methods, bases, depth - 1) for base in bases.get(name, ()) if base != name)
    )
