"""engine_packages: whether torch, the kernels and FlashInfer fit each other and the engine's release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found, version_key
from dflashctl.core.findings import Severity
from dflashctl.core.flashinfer_wheels import CUBIN, JIT_CACHE, install_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding
    from dflashctl.core.host import Software

ID = "engine_packages"
NEEDS = ("software",)
SOURCE = (
    "vllm-project/vllm#49804: `flashinfer-cubin version (0.6.13) does not match flashinfer version (0.6.14)`; "
    "sgl-project/sglang#18203: sglang-kernel built against another torch does not load"
)
_KERNEL_UNCHECKED = "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK"


def check(facts: Facts) -> Iterator[Finding]:
    software = facts.software
    if software is None or software.sglang is None:
        return
    if software.torch is not None and software.cuda_build is None:
        yield found(
            ID,
            Severity.ERROR,
            f"torch {software.torch} is built without CUDA: the engine would start on the CPU or not at all",
            fix=f"install the CUDA build: {software.python} -m pip install --force-reinstall torch",
        )
    yield from _flashinfer(software)
    yield from _pinned(software, facts.variables)


def _flashinfer(software: Software) -> Iterator[Finding]:
    """The three packages are built together; FlashInfer compares them itself when it is imported."""
    main = version_key(software.flashinfer_python)
    others = {CUBIN: software.flashinfer_cubin, JIT_CACHE: software.flashinfer_jit_cache}
    wrong = {name: version for name, version in others.items() if version and version_key(version) != main}
    if main and wrong:
        yield found(
            ID,
            Severity.ERROR,
            f"flashinfer-python {software.flashinfer_python} does not go with "
            + " and ".join(f"{name} {version}" for name, version in wrong.items()),
            fix=f"install the same version of all: {install_command(software, wrong)}",
        )


def _pinned(software: Software, variables: dict[str, str]) -> Iterator[Finding]:
    have = {
        "torch": software.torch,
        "sglang-kernel": software.sglang_kernel,
        "flashinfer-python": software.flashinfer_python,
    }
    for name, rule in software.needs:
        wanted = rule.removeprefix("==")
        version = have.get(name)
        if not rule.startswith("==") or version is None or version_key(version) == version_key(wanted):
            continue
        too_old = name == "sglang-kernel" and version_key(version) < version_key(wanted)
        refused = too_old and variables.get(_KERNEL_UNCHECKED) != "1"
        yield found(
            ID,
            Severity.ERROR if refused else Severity.WARNING,
            f"SGLang {software.sglang} is made for {name} {wanted}, installed is {version}"
            + (": it refuses to start" if refused else ""),
            fix=f"{software.python} -m pip install {name}=={wanted}",
        )
