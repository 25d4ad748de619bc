"""Child environment: what of ours the server gets to see; everything else, tokens above all, stays here."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAMES = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "LD_LIBRARY_PATH",
        "LIBRARY_PATH",
        "CPATH",
        "C_INCLUDE_PATH",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
        "PYTHONPATH",
        "PYTHONHOME",
        "CC",
        "CXX",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "HF_HOME",
        "HF_HUB_CACHE",
        "HF_HUB_OFFLINE",
        "HF_DATASETS_CACHE",
        "HF_MODULES_CACHE",
        "HF_ENDPOINT",
        "HUGGINGFACE_HUB_CACHE",
        "TRANSFORMERS_CACHE",
        "TRANSFORMERS_OFFLINE",
        "KMP_AFFINITY",
        "GOMP_CPU_AFFINITY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
    ]
)
_PREFIXES = (
    "LC_",
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "NVSHMEM_",
    "UCX_",
    "SGLANG_",
    "SGL_",
    "FLASHINFER_",
    "TRITON_",
    "TORCH",
    "PYTORCH_",
    "OMP_",
    "MKL_",
    "OPENBLAS_",
    "HSA_",
    "HIP_",
    "ROCR_",
)
SECRETS = frozenset({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_TOKEN", "DFLASHCTL_API_KEY"})
_ENGINE_SETTINGS = ("SGLANG_", "SGL_")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def child_environment(
    ours: Mapping[str, str], planned: Iterable[tuple[str, str]], *, temporary: str, host: str
) -> dict[str, str]:
    """The server's environment: the allowed part of `ours`, our defaults, then the plan's, which wins.

    `temporary` becomes TMPDIR. The server's own warm-up calls the address `host` that it listens on and must not go
    through a proxy (sgl-project/sglang#9814: it then kills itself), so that address and loopback are excepted.
    """
    env = {name: value for name, value in ours.items() if name in _NAMES or name.startswith(_PREFIXES)}
    env |= {"PYTHONUNBUFFERED": "1", "TMPDIR": temporary}
    env |= dict(planned)
    if any(name.lower().endswith("_proxy") for name in env):
        past = env.get("no_proxy") or env.get("NO_PROXY") or ""
        own = () if host in _LOOPBACK else (host,)
        env["no_proxy"] = env["NO_PROXY"] = ",".join((*([past] if past else ()), *_LOOPBACK, *own))
    return {name: value for name, value in env.items() if name not in SECRETS}


def engine_settings(ours: Mapping[str, str]) -> dict[str, str]:
    """The engine's own settings among `ours`: the server gets them beside the plan's, so the plan is judged with them."""
    return {
        name: value
        for name, value in ours.items()
        if name.startswith(_ENGINE_SETTINGS) and name not in SECRETS
    }


def secret_values(ours: Mapping[str, str]) -> tuple[str, ...]:
    """Values that must not appear in anything we write."""
    return tuple(value for name, value in ours.items() if name in SECRETS and value)
