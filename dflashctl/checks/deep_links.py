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


def check(facts: Facts) -> Iterator[Finding]:
    deep = facts.deep
    if deep is None:
        return
    for right, words in ((False, "arrive damaged"), (None, "do not end in time")):
        bad = [copy for copy in deep.copies if copy.right is right]
        if bad:
            yield found(
                ID,
                Severity.ERROR,
                f"copies between GPUs {words}: {', '.join(f'{c.a}-{c.b}' for c in bad)}",
                fix="boot with iommu=pt or turn ACS off; NCCL_P2P_DISABLE=1 with --disable-custom-all-reduce avoids them",
            )
    if deep.all_reduce_tried and deep.all_reduce_right is not True:
        why = "gives a wrong sum" if deep.all_reduce_right is False else "does not end"
        yield found(
            ID,
            Severity.ERROR,
            f"an all-reduce over the GPUs {why}"
            + (
                f" within {deep.all_reduce_s:.0f} s"
                if deep.all_reduce_right is None and deep.all_reduce_s
                else ""
            ),
            detail=deep.all_reduce_error,
            fix="try NCCL_DEBUG=INFO; Xid 145 or a fabric manager restarted without a GPU reset need a reboot",
        )
