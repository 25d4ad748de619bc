"""Stand-alone script: start CUDA, copy between GPUs and reduce over them; one JSON object a step on stdout.

Runs in the engine's interpreter, with torch where it is there; imports nothing of dflashctl. Each step has a line when
it begins and one when it is done, so that a hang, a crash or an exception names the step that did not end.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from typing import Any

_COPY_BYTES = 64 << 20
_REPEATS = 4


def say(step: str, **values: object) -> None:
    sys.stdout.write(json.dumps({"step": step, **values}) + "\n")
    sys.stdout.flush()


def start_cuda() -> bool:
    """Call cuInit through the driver's own library: no torch needed, and the code is CUDA's."""
    say("starting")
    begin = time.monotonic()
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        say("cuda", error=100, text=str(error))
        return False
    code = cuda.cuInit(0)
    count = ctypes.c_int(0)
    if code == 0:
        code = cuda.cuDeviceGetCount(ctypes.byref(count))
    context = ctypes.c_void_p()
    for number in range(count.value):
        device = ctypes.c_int()
        code = code or cuda.cuDeviceGet(ctypes.byref(device), number)
        code = code or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        if code:
            break
    say("cuda", error=code, text=_text(cuda, code), devices=count.value, seconds=time.monotonic() - begin)
    return bool(code == 0)


def _text(cuda: ctypes.CDLL, code: int) -> str | None:
    if code == 0:
        return None
    text = ctypes.c_char_p()
    cuda.cuGetErrorString(code, ctypes.byref(text))
    return text.value.decode(errors="replace") if text.value else None


def copy_pairs(torch: Any) -> None:
    """A pattern from each GPU to each other one, compared on arrival."""
    count = torch.cuda.device_count()
    for a in range(count):
        for b in range(count):
            if a < b:
                say("copying", a=a, b=b)
                right, rate = _copy(torch, a, b)
                say("copy", a=a, b=b, right=right, gb_per_s=rate)


def _copy(torch: Any, a: int, b: int) -> tuple[bool, float]:
    size = _COPY_BYTES // 4
    source = torch.arange(size, dtype=torch.int32, device=f"cuda:{a}")
    target = torch.zeros(size, dtype=torch.int32, device=f"cuda:{b}")
    target.copy_(source)
    torch.cuda.synchronize(b)
    right = bool((target == torch.arange(size, dtype=torch.int32, device=f"cuda:{b}")).all())
    begin = time.monotonic()
    for _ in range(_REPEATS):
        target.copy_(source)
    torch.cuda.synchronize(b)
    return right, _REPEATS * _COPY_BYTES / (time.monotonic() - begin) / 1e9


def all_reduce(torch: Any) -> None:
    """One sum over all GPUs through NCCL, from one process."""
    from torch.cuda import nccl

    count = torch.cuda.device_count()
    say("reducing")
    begin = time.monotonic()
    parts = [torch.full((1 << 20,), float(i + 1), device=f"cuda:{i}") for i in range(count)]
    nccl.all_reduce(parts)
    for i in range(count):
        torch.cuda.synchronize(i)
    wanted = count * (count + 1) / 2
    right = all(bool((part == wanted).all()) for part in parts)
    say("reduce", right=right, seconds=time.monotonic() - begin)


def attempt() -> None:
    if not start_cuda():
        return
    say("importing")
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        say("no_torch", text=str(error))
        return
    say("torch", devices=torch.cuda.device_count())
    if torch.cuda.device_count() > 1:
        copy_pairs(torch)
        all_reduce(torch)
    say("done")


def main() -> int:
    try:
        attempt()
    except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the step that was begun
        say("failed", text=f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
