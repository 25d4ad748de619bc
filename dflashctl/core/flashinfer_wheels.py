"""FlashInfer's companion wheels: where those of one version are, and the command that installs them.

Source: `flashinfer install-cubin-wheel` and `install-jit-cache-wheel` (flashinfer/__main__.py, 0.7.2). PyPI stays behind with
flashinfer-cubin and has no flashinfer-jit-cache.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.core.host import Software

CUBIN = "flashinfer-cubin"
JIT_CACHE = "flashinfer-jit-cache"
_INDEX = "https://flashinfer.ai/whl"


def install_command(software: Software, packages: Iterable[str]) -> str:
    """One shell line that installs `packages` in the version of flashinfer-python, the newest when that is not here."""
    return " && ".join(_install(software, package) for package in packages)


def _install(software: Software, package: str) -> str:
    version = (software.flashinfer_python or "").split("+")[0]
    wanted = f"{package}=={version}" if version else package
    index = f"{_INDEX}/{_label(software.cuda_build)}" if package == JIT_CACHE else _INDEX
    return f"{software.python} -m pip install {wanted} --index-url {index}"


def _label(cuda_build: str | None) -> str:
    """The folder of a CUDA release: "13.0" is cu130."""
    return f"cu{''.join(cuda_build.split('.')[:2])}" if cuda_build else "cuNNN"
