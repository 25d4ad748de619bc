"""DeepFacts: what only a real attempt shows: CUDA starts, GPUs reach each other, the disk reads, kernels compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DeepRequest:
    """What to try: with the engine's interpreter `python`, on `gpus` (UUIDs), reading from the folder `weights`.

    `no_gpus` and `no_weights` say why there are none.
    """

    python: str
    gpus: tuple[str, ...] = ()
    weights: Path | None = None
    no_gpus: str = "no GPU"
    no_weights: str = "no weights on disk yet"


@dataclass(frozen=True, kw_only=True)
class PairCopy:
    """One copy between two GPUs, checked byte for byte; `right` is None when it did not end, and `error` says how."""

    a: int
    b: int
    right: bool | None
    gb_per_s: float | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class DeepFacts:
    """None means not tried, with the reason in `skipped`; times are seconds.

    `cuda_error` is CUDA's code of the first failing call (802: the fabric is not ready), 0 when it starts; None beside a
    `cuda_error_text` when no answer came, which then says why. CUDA was asked for `gpus_asked` devices.
    `all_reduce_right` is None when the collective did not end; `all_reduce_error` says how, and `all_reduce_s` is the limit
    when it met that. The other errors are those of a step that was begun and not finished.
    """

    gpus_asked: int = 0
    cuda_error: int | None = None
    cuda_error_text: str | None = None
    cuda_devices: int | None = None
    cuda_start_s: float | None = None
    torch_devices: int | None = None
    torch_error: str | None = None
    copies: tuple[PairCopy, ...] = ()
    all_reduce_tried: bool = False
    all_reduce_right: bool | None = None
    all_reduce_s: float | None = None
    all_reduce_error: str | None = None
    disk_read_gb_per_s: float | None = None
    disk_path: str | None = None
    disk_error: str | None = None
    jit_compile_s: float | None = None
    jit_error: str | None = None
    skipped: tuple[str, ...] = ()
