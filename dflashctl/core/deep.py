"""DeepFacts: what only a real attempt shows: CUDA starts, GPUs reach each other, the disk reads, kernels compile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PairCopy:
    """One copy between two GPUs, checked byte for byte; `right` is None when it did not end in time."""

    a: int
    b: int
    right: bool | None
    gb_per_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class DeepFacts:
    """None means not tried, with the reason in `skipped`; times are seconds.

    `cuda_error` is CUDA's code of the first failing call (802: the fabric is not ready), 0 when it starts.
    `all_reduce_right` is None when the collective did not end within its limit and `all_reduce_s` is the limit.
    """

    cuda_error: int | None = None
    cuda_error_text: str | None = None
    cuda_devices: int | None = None
    cuda_start_s: float | None = None
    copies: tuple[PairCopy, ...] = ()
    all_reduce_tried: bool = False
    all_reduce_right: bool | None = None
    all_reduce_s: float | None = None
    all_reduce_error: str | None = None
    disk_read_gb_per_s: float | None = None
    disk_path: str | None = None
    jit_compile_s: float | None = None
    jit_error: str | None = None
    skipped: tuple[str, ...] = ()
