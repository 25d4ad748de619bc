"""Deep probe: runs what costs seconds in processes of its own, each with a limit, and reports what happened."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.deep import DeepFacts, PairCopy

if TYPE_CHECKING:
    from collections.abc import Mapping

_SCRIPT = Path(__file__).with_name("deep_attempt.py")
# Importing torch, starting CUDA on eight GPUs and 28 copies take well under a minute where all is well.
_ATTEMPT_LIMIT_S = 120.0
_COMPILE_LIMIT_S = 60.0
_READ_BYTES = 1 << 30
_CHUNK_BYTES = 16 << 20
_KERNEL = 'extern "C" __global__ void k(float *x) { x[threadIdx.x] *= 2.0f; }\n'


def probe(
    python: str,
    environ: Mapping[str, str],
    *,
    gpus: tuple[str, ...],
    architecture: str | None,
    weights: Path | None,
    limit_s: float = _ATTEMPT_LIMIT_S,
) -> DeepFacts:
    """Everything once; `architecture` is nvcc's name for the GPU ("sm_90"), None without a GPU."""
    skipped: list[str] = []
    values: dict[str, Any] = {}
    if gpus:
        values.update(_attempt(python, environ, gpus, limit_s, skipped))
    else:
        skipped.append("CUDA, copies and all-reduce: no GPU")
    values.update(_read_disk(weights, skipped))
    values.update(_compile(environ, architecture, skipped))
    return DeepFacts(**values, skipped=tuple(skipped))


def _attempt(
    python: str, environ: Mapping[str, str], gpus: tuple[str, ...], limit_s: float, skipped: list[str]
) -> dict[str, Any]:
    env = {**environ, "CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    steps, ended = _run([python, str(_SCRIPT)], env, limit_s)
    by_name = {step["step"]: step for step in steps}
    found: dict[str, Any] = {}
    cuda = by_name.get("cuda")
    if cuda is None:
        skipped.append(f"CUDA: {python} did not get so far")
        return found
    found.update(
        cuda_error=cuda["error"],
        cuda_error_text=cuda.get("text"),
        cuda_devices=cuda.get("devices"),
        cuda_start_s=cuda.get("seconds"),
    )
    if "no_torch" in by_name:
        skipped.append(f"copies and all-reduce: {python} has no torch")
    elif len(gpus) == 1:
        skipped.append("copies and all-reduce: one GPU")
    found["copies"] = _copies(steps, ended=ended)
    found.update(_reduction(by_name, limit_s, ended=ended))
    return found


def _copies(steps: list[dict[str, Any]], *, ended: bool) -> tuple[PairCopy, ...]:
    done = {
        (s["a"], s["b"]): PairCopy(a=s["a"], b=s["b"], right=s["right"], gb_per_s=round(s["gb_per_s"], 1))
        for s in steps
        if s["step"] == "copy"
    }
    begun = [(s["a"], s["b"]) for s in steps if s["step"] == "copying"]
    hung = [PairCopy(a=a, b=b, right=None) for a, b in begun if (a, b) not in done and not ended]
    return (*done.values(), *hung)


def _reduction(by_name: dict[str, dict[str, Any]], limit_s: float, *, ended: bool) -> dict[str, Any]:
    step = by_name.get("reduce")
    if step is not None:
        return {
            "all_reduce_tried": True,
            "all_reduce_right": step["right"],
            "all_reduce_s": step.get("seconds"),
            "all_reduce_error": step.get("error"),
        }
    if "reducing" in by_name and not ended:
        return {"all_reduce_tried": True, "all_reduce_right": None, "all_reduce_s": limit_s}
    return {}


def _run(argv: list[str], env: Mapping[str, str], limit_s: float) -> tuple[list[dict[str, Any]], bool]:
    """The script's steps, and whether it ended by itself; past the limit its whole session is killed."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            argv, env=dict(env), stdout=output, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(timeout=limit_s)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        lines = [line for line in output if line.startswith("{")]
    return [json.loads(line) for line in lines], ended


def _read_disk(weights: Path | None, skipped: list[str]) -> dict[str, Any]:
    """Reads up to 1 GiB of the largest weight file, after asking the kernel to forget its pages."""
    files = sorted(weights.glob("*.safetensors"), key=lambda f: f.stat().st_size) if weights else []
    if not files:
        skipped.append("disk speed: no weights on disk yet")
        return {}
    handle = os.open(files[-1], os.O_RDONLY)
    try:
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        begin, read = time.monotonic(), 0
        while read < _READ_BYTES and (chunk := os.read(handle, _CHUNK_BYTES)):
            read += len(chunk)
        seconds = time.monotonic() - begin
    finally:
        os.close(handle)
    if read < _CHUNK_BYTES:
        skipped.append("disk speed: the weights are too small to measure with")
        return {}
    return {"disk_read_gb_per_s": round(read / seconds / 1e9, 2), "disk_path": str(files[-1])}


def _compile(environ: Mapping[str, str], architecture: str | None, skipped: list[str]) -> dict[str, Any]:
    """One kernel through nvcc for this GPU's own architecture."""
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH") or "/usr/local/cuda"
    nvcc = shutil.which("nvcc", path=environ.get("PATH")) or shutil.which(f"{home}/bin/nvcc")
    if nvcc is None or architecture is None:
        skipped.append("compilation: no nvcc" if nvcc is None else "compilation: no GPU")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "k.cu")
        source.write_text(_KERNEL, encoding="ascii")
        begin = time.monotonic()
        try:
            done = subprocess.run(
                [nvcc, "-cubin", f"-arch={architecture}", "-o", f"{folder}/k.cubin", str(source)],
                env=dict(environ),
                capture_output=True,
                text=True,
                timeout=_COMPILE_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"jit_error": f"nvcc did not end within {_COMPILE_LIMIT_S:.0f} s"}
        seconds = time.monotonic() - begin
    if done.returncode != 0:
        return {"jit_error": done.stderr.strip()[-500:] or f"nvcc exited with {done.returncode}"}
    return {"jit_compile_s": round(seconds, 2)}
