"""Deep probe: runs what costs seconds in processes of its own, each with a limit, and reports what happened."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.deep import DeepFacts
from dflashctl.edges.deep_steps import facts_of
from dflashctl.edges.limited import run_limited

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dflashctl.core.deep import DeepRequest

_SCRIPT = Path(__file__).with_name("deep_attempt.py")
_READ_SCRIPT = Path(__file__).with_name("deep_read.py")
# Importing torch, starting CUDA on eight GPUs and 28 copies take well under a minute where all is well.
_ATTEMPT_LIMIT_S = 120.0
_COMPILE_LIMIT_S = 60.0
# The script itself stops after half of that, unless the disk does not answer.
_READ_LIMIT_S = 60.0
_KERNEL = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2.0f; }\n'


def probe(
    request: DeepRequest,
    environ: Mapping[str, str],
    *,
    architecture: str | None,
    limit_s: float = _ATTEMPT_LIMIT_S,
    read_limit_s: float = _READ_LIMIT_S,
) -> DeepFacts:
    """Everything once; `architecture` is nvcc's name for the GPU ("sm_90"), None when it is not known."""
    skipped: list[str] = []
    values: dict[str, Any] = {}
    if request.gpus:
        values.update(_attempt(request, environ, limit_s, skipped))
    else:
        skipped.append(f"CUDA, copies and all-reduce: {request.no_gpus}")
    values.update(_read_disk(request, read_limit_s, skipped))
    values.update(_compile(request, environ, architecture, skipped))
    return DeepFacts(**values, skipped=tuple(skipped))


def _attempt(
    request: DeepRequest, environ: Mapping[str, str], limit_s: float, skipped: list[str]
) -> dict[str, Any]:
    env = {**environ, "CUDA_VISIBLE_DEVICES": ",".join(request.gpus)}
    ended = run_limited([request.python, str(_SCRIPT)], env, limit_s)
    if not ended.started:
        skipped.append(f"CUDA, copies and all-reduce: {ended.trouble}")
        return {}
    found, reasons = facts_of(ended, gpus=len(request.gpus), python=request.python, limit_s=limit_s)
    skipped += reasons
    return found


def _read_disk(request: DeepRequest, limit_s: float, skipped: list[str]) -> dict[str, Any]:
    """The speed of reading the weights; a disk that does not answer holds only the child."""
    if request.weights is None:
        skipped.append(f"disk speed: {request.no_weights}")
        return {}
    argv = [sys.executable, "-I", str(_READ_SCRIPT), str(request.weights)]
    ended = run_limited(argv, os.environ, limit_s)
    if ended.trouble is not None:
        return {"disk_error": f"{request.weights}: {ended.trouble}"}
    answer = json.loads(ended.output)
    if "error" in answer:
        return {"disk_error": answer["error"]}
    if "skipped" in answer:
        skipped.append(f"disk speed: {answer['skipped']}")
        return {}
    rate = answer["bytes"] / answer["seconds"] / 1e9
    return {"disk_read_gb_per_s": round(rate, 2), "disk_path": answer["path"]}


def _compile(
    request: DeepRequest, environ: Mapping[str, str], architecture: str | None, skipped: list[str]
) -> dict[str, Any]:
    """One kernel through nvcc for this GPU's own architecture."""
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH") or "/usr/local/cuda"
    nvcc = shutil.which("nvcc", path=environ.get("PATH")) or shutil.which(f"{home}/bin/nvcc")
    if nvcc is None or architecture is None:
        no_target = "the GPU does not tell its compute capability" if request.gpus else request.no_gpus
        skipped.append(f"compilation: {'no nvcc' if nvcc is None else no_target}")
        return {}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source = Path(folder, "k.cu")
        source.write_text(_KERNEL, encoding="ascii")
        begin = time.monotonic()
        ended = run_limited(
            [nvcc, "-cubin", f"-arch={architecture}", "-o", f"{folder}/k.cubin", str(source)],
            environ,
            _COMPILE_LIMIT_S,
        )
        seconds = time.monotonic() - begin
    if ended.trouble is None:
        return {"jit_compile_s": round(seconds, 2)}
    told = (ended.errors.strip() or ended.output.strip())[-500:]
    return {"jit_error": f"nvcc: {ended.trouble}" if ended.hung or not told else told}
