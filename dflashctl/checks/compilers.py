"""compilers: assemblers new enough for the GPU, and nvcc where the plan compiles kernels at run time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import error_or, found, version_key
from dflashctl.core.findings import Severity
from dflashctl.core.flashinfer_wheels import JIT_CACHE, install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "compilers"
NEEDS = ("gpus", "software")
SOURCE = (
    "sgl-project/sglang#14075: on B300 ptxas exits 255 for sm_103a; sm_100 came with CUDA 12.8, sm_103 with 12.9; "
    "Triton's get_ptxas takes ptxas-blackwell from compute capability 10.0 on"
)
_LEAST_CUDA = {(10, 3): (12, 9), (10, 0): (12, 8), (12, 0): (12, 8)}
_BLACKWELL = (10, 0)


def check(facts: Facts) -> Iterator[Finding]:
    software = facts.software
    capability = max((gpu.compute_capability or (0, 0) for gpu in facts.gpus), default=(0, 0))
    least = _LEAST_CUDA.get(capability)
    if software is None or software.sglang is None:
        return
    arch = f"sm_{capability[0]}{capability[1]}"
    if least:
        apart = capability >= _BLACKWELL and bool(software.ptxas_blackwell)
        variable = "TRITON_PTXAS_BLACKWELL_PATH" if apart else "TRITON_PTXAS_PATH"
        for where, version in software.ptxas_blackwell if apart else software.ptxas:
            if version_key(version) < least:
                yield found(
                    ID,
                    error_or(if_planned=facts.needs_gpus),
                    f"ptxas {version} at {where} does not know {arch}: Triton's kernels cannot be assembled",
                    fix=f"export {variable}=/usr/local/cuda/bin/ptxas (of CUDA {least[0]}.{least[1]} or newer)",
                )
        if software.nvcc and version_key(software.nvcc) < least:
            yield found(
                ID,
                error_or(if_planned=facts.needs_gpus),
                f"nvcc {software.nvcc} does not know {arch}: kernels compiled at run time will fail",
                fix=f"install the CUDA toolkit {least[0]}.{least[1]} or newer and set CUDA_HOME to it",
            )
    if facts.on_sglang and software.nvcc is None and software.flashinfer_jit_cache is None:
        yield found(
            ID,
            Severity.WARNING,
            "there is no nvcc and no flashinfer-jit-cache: kernels that SGLang compiles at run time cannot be built",
            fix=f"{install_command(software, [JIT_CACHE])}, or install the CUDA toolkit and set CUDA_HOME",
        )
