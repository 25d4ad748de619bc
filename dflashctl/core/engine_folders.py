"""Engine folders: where an engine, and dflashctl for it, puts compiled kernels and short-lived files, by its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.host import Folder

if TYPE_CHECKING:
    from collections.abc import Mapping

STATE = "state"
TEMPORARY = "temporary"
WEIGHTS = "weights"
# What puts a folder of compiled kernels elsewhere.
CACHES = {
    "triton": "TRITON_CACHE_DIR",
    "flashinfer": "FLASHINFER_WORKSPACE_BASE",
    "deep_gemm": "SGLANG_DG_CACHE_DIR",
    "torch_extensions": "TORCH_EXTENSIONS_DIR",
}
# And any folder. The server's TMPDIR is a folder of dflashctl's own, unless the plan sets another.
VARIABLES = {
    **CACHES,
    WEIGHTS: "HF_HUB_CACHE",
    TEMPORARY: "DFLASHCTL_RUNTIME_DIR",
    STATE: "DFLASHCTL_STATE_DIR",
}
# What a start of the embedded engine leaves in the state folder takes 60 kB; a real engine's log is longer.
START_BYTES = 1_000_000
_HOME = "~"


def engine_folders(environ: Mapping[str, str], home: str) -> tuple[tuple[str, str], ...]:
    """Kind and path of each folder; without TMPDIR no temporary one is known."""
    flashinfer = environ.get("FLASHINFER_WORKSPACE_BASE") or home
    places = (
        ("triton", environ.get("TRITON_CACHE_DIR") or f"{environ.get('TRITON_HOME') or home}/.triton/cache"),
        ("flashinfer", f"{flashinfer}/.cache/flashinfer"),
        ("deep_gemm", environ.get("SGLANG_DG_CACHE_DIR") or f"{home}/.cache/deep_gemm"),
        ("torch_extensions", environ.get("TORCH_EXTENSIONS_DIR") or f"{home}/.cache/torch_extensions"),
        (TEMPORARY, environ.get("TMPDIR")),
    )
    return tuple((kind, path) for kind, path in places if path)


def moved(planned: Mapping[str, str]) -> dict[str, str]:
    """The folders, by kind, that a plan's environment puts elsewhere than where they would be without it."""
    usual = dict(engine_folders({}, _HOME))
    now = engine_folders(planned, planned.get("HOME") or _HOME)
    return {kind: path for kind, path in now if path != usual.get(kind)}


def unseen(folders: tuple[Folder, ...], planned: Mapping[str, str]) -> tuple[Folder, ...]:
    """The folders of a machine that cannot be looked at: of those that `planned` moves nothing is known."""
    elsewhere = moved(planned)
    return tuple(
        Folder(kind=folder.kind, path=elsewhere[folder.kind]) if folder.kind in elsewhere else folder
        for folder in folders
    )
