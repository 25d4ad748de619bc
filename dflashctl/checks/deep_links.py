"""deep_links: copies between GPUs and one all-reduce over all of them, tried for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "deep_links"
NEEDS = ("tried_links",)
SOURCE = (
    "vllm-project/vllm#51513: the driver says peers are reachable and writes are lost; "
    "NVIDIA/open-gpu-kernel-modules#1355: collectives hang on B300 while all registers look well"
)
_AVOID = "boot with iommu=pt or turn ACS off; NCCL_P2P_DISABLE=1 with --disable-custom-all-reduce avoids them"


def check(facts: Facts) -> Iterator[Finding]:
    deep = facts.deep
    if deep is None:
        return
    damaged = [copy for copy in deep.copies if copy.right is False]
    if damaged:
        pairs = ", ".join(f"{copy.a}-{copy.b}" for copy in damaged)
        yield found(ID, Severity.ERROR, f"copies between GPUs arrive damaged: {pairs}", fix=_AVOID)
    for copy in deep.copies:
        if copy.right is None:
            yield found(
                ID,
                Severity.ERROR,
                f"a copy from GPU {copy.a} to GPU {copy.b} failed: {copy.error}",
                fix=_AVOID,
            )
    if deep.all_reduce_tried and deep.all_reduce_right is not True:
        wrong = deep.all_reduce_right is False
        yield found(
            ID,
            Severity.ERROR,
            f"an all-reduce over the GPUs {'gives a wrong sum' if wrong else f'failed: {deep.all_reduce_error}'}",
            fix="try NCCL_DEBUG=INFO; Xid 145 or a fabric manager restarted without a GPU reset need a reboot",
        )
