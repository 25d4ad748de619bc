"""The engine's interpreter: what is installed there, asked of that interpreter without importing the engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.anonymous import shorten_home
from dflashctl.core.host import Software
from dflashctl.edges.text_file import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_TIMEOUT_S = 20.0
_TOOL_TIMEOUT_S = 5.0
_RELEASE = re.compile(r"release (\d+\.\d+)")

# Runs in the other interpreter, so it may use nothing but the standard library of any Python 3.
_SCRIPT = """
import json, re, sys
from importlib import metadata
from importlib.util import find_spec
def version(*names):
    for name in names:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            pass
    return None
def folder(name):
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec else None
    return list(places)[0] if places else None
def needs():
    try:
        lines = metadata.requires("sglang") or []
    except metadata.PackageNotFoundError:
        return []
    found = (re.match(r"([A-Za-z0-9_.-]+)(?:\\[[^]]*\\])?\\s*\\(?([=<>!~][^;)]*)?", l) for l in lines if "extra ==" not in l)
    wanted = ("torch", "sglang-kernel", "flashinfer-python", "flashinfer-cubin")
    pairs = [(m.group(1).lower().replace("_", "-"), (m.group(2) or "").strip()) for m in found if m]
    return [p for p in pairs if p[0] in wanted and p[1]]
torch, cuda = folder("torch"), None
if torch:
    try:
        text = open(torch + "/version.py").read()
        m = re.search(r"^cuda[^=\\n]*=\\s*['\\"]([0-9.]+)", text, re.M)
        cuda = m.group(1) if m else None
    except OSError:
        pass
triton = folder("triton")
print(json.dumps({
    "python": sys.executable, "python_version": ".".join(map(str, sys.version_info[:3])),
    "sglang": version("sglang"), "torch": version("torch"), "cuda_build": cuda,
    "sglang_kernel": version("sglang-kernel", "sgl-kernel"), "triton": version("triton"),
    "flashinfer_python": version("flashinfer-python"), "flashinfer_cubin": version("flashinfer-cubin"),
    "flashinfer_jit_cache": version("flashinfer-jit-cache"), "needs": needs(),
    "triton_bin": triton + "/backends/nvidia/bin" if triton else None,
}))
"""


def read_software(python: str, environ: Mapping[str, str]) -> Software:
    """What `python` has; `problem` says why it could not be asked."""
    try:
        done = subprocess.run(
            [python, "-c", _SCRIPT],
            env=dict(environ),
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Software(python=python, problem=f"{python!r} cannot be run: {_reason(error)}")
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
        return Software(python=python, problem=f"{python!r} does not work: {last[0]}")
    return _software(json.loads(done.stdout.splitlines()[-1]), environ)


def _software(answer: dict[str, Any], environ: Mapping[str, str]) -> Software:
    home = environ.get("HOME") or str(Path.home())
    tools = answer.pop("triton_bin")
    answer["needs"] = tuple((name, rule) for name, rule in answer["needs"])
    answer["python"] = shorten_home(answer["python"], home)
    if answer["torch"] is None and answer["sglang"] is None:
        return Software(**answer)
    return Software(
        **answer,
        nvcc=_nvcc(environ),
        ptxas=_assembler(environ.get("TRITON_PTXAS_PATH"), tools, "ptxas", home),
        ptxas_blackwell=_assembler(
            environ.get("TRITON_PTXAS_BLACKWELL_PATH"), tools, "ptxas-blackwell", home
        ),
    )


def _assembler(named: str | None, tools: str | None, own: str, home: str) -> tuple[tuple[str, str], ...]:
    """The assembler that Triton will use: the named one when it answers, else Triton's own (triton/knobs.py)."""
    for path in (named, f"{tools}/{own}" if tools else None):
        version = _release(path) if path else None
        if path and version:
            return ((shorten_home(path, home), version),)
    return ()


def _nvcc(environ: Mapping[str, str]) -> str | None:
    """The CUDA toolkit that kernels are compiled with at run time; its version file spares a process."""
    root = environ.get("CUDA_HOME") or environ.get("CUDA_PATH")
    found = shutil.which("nvcc", path=environ.get("PATH"))
    root = root or (str(Path(found).resolve().parent.parent) if found else "/usr/local/cuda")
    if not Path(root, "bin", "nvcc").exists():
        return None
    text = read_text(Path(root, "version.json"))
    match = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"(\d+\.\d+)', text or "")
    return match.group(1) if match else _release(f"{root}/bin/nvcc")


def _release(program: str) -> str | None:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=_TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _RELEASE.search(done.stdout)
    return found.group(1) if found else None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "no answer in time"
