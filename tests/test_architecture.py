"""The layers, enforced: who may import whom, how large a module may grow, where printing is allowed."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "dflashctl"
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if "shipped" not in p.parts)
MAX_LINES = 300
FORBIDDEN_NAMES = {"utils", "util", "helpers", "common", "misc", "manager", "handler"}

# What each layer may import from within dflashctl; `core` may import nothing else at all.
LAYERS = {
    "core": {"core"},
    "ports": {"core", "ports"},
    "engines": {"core", "engines"},
    "checks": {"core", "checks"},
    "edges": {"core", "ports", "edges"},
    "proofs": {"core", "ports", "proofs", "reference"},
    "workloads": {"core", "ports", "workloads", "reference"},
    "bench": {"core", "ports", "bench"},
    "supervise": {"core", "ports", "edges", "engines", "supervise", "env"},
    "commands": {
        "core",
        "ports",
        "engines",
        "checks",
        "proofs",
        "workloads",
        "bench",
        "report_html",
        "supervise",
        "commands",
        "env",
    },
    "report_html": {"core", "report_html"},
    "ui": {"core", "ui"},
    "cli": {"core", "commands", "cli", "edges", "env", "streams"},
    "reference": {"reference"},
    "signatures": {"core", "signatures"},
}
# Third-party libraries that only one layer may know.
CONFINED = {
    "typer": {"cli"},
    "rich": {"ui"},
    "pynvml": {"edges"},
    "docker": {"edges"},
    "huggingface_hub": {"edges", "workloads"},
    "yaml": {"edges", "reference", "engines"},
    "aiohttp": {"reference"},
    "numpy": {"reference"},
}


def layer(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def identifier(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", MODULES, ids=identifier)
def test_a_layer_imports_only_what_it_may(path):
    mine = layer(path)
    allowed = LAYERS.get(mine)
    if allowed is None:
        return
    inside = {name.split(".")[1] for name in imports(path) if name.startswith("dflashctl.")}
    assert inside - allowed - {"__version__"} == set()


@pytest.mark.parametrize("path", MODULES, ids=identifier)
def test_a_library_is_known_to_one_layer(path):
    tops = {name.split(".")[0] for name in imports(path)}
    wrong = {lib for lib, layers in CONFINED.items() if lib in tops and layer(path) not in layers}
    assert wrong == set()


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) == "core"], ids=identifier)
def test_core_touches_nothing(path):
    banned = {"os", "subprocess", "socket", "time", "pathlib", "shutil", "tempfile", "threading", "asyncio"}
    found = {name.split(".")[0] for name in _runtime_imports(tree(path))}
    assert found & banned == set()


def _runtime_imports(module: ast.Module) -> set[str]:
    """Imports outside `if TYPE_CHECKING`."""
    found: set[str] = set()
    for node in module.body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        for inner in ast.walk(node):
            if isinstance(inner, ast.Import):
                found |= {alias.name for alias in inner.names}
            elif isinstance(inner, ast.ImportFrom) and inner.module:
                found.add(inner.module)
    return found


@pytest.mark.parametrize("path", MODULES, ids=identifier)
def test_a_module_is_small_and_says_its_duty(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES or path.name == "stored_help.py"  # a stored text
    assert path.stem not in FORBIDDEN_NAMES
    if text.strip():
        assert ast.get_docstring(tree(path)), "the first line of a module says what it is for"


@pytest.mark.parametrize("path", [p for p in MODULES if layer(p) != "ui"], ids=identifier)
def test_only_the_ui_prints(path):
    calls = [n for n in ast.walk(tree(path)) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    printing = [call.lineno for call in calls if call.func.id == "print"]
    # Stand-alone programs that run in another interpreter talk through their standard output.
    alone = path.name in ("introspect.py", "make_catalogue.py", "hub_worker.py", "train_tiny_pair.py")
    assert alone or printing == []


def test_every_top_level_folder_has_its_purpose():
    known = {
        "dflashctl", "profiles", "templates", "tests", "completions", "docs", ".ci", ".git",
        ".gitignore", ".pre-commit-config.yaml", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml",
    }  # fmt: skip
    import subprocess

    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    tracked = {name.split("/")[0] for name in listed.stdout.splitlines()}
    assert tracked - known == set()
