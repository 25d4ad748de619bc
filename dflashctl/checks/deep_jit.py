"""deep_jit: a kernel compiled for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "deep_jit"
NEEDS = ("tried_jit",)
SOURCE = (
    "aws/deep-learning-containers#6497: kernels build for the wrong architecture, and only a run shows it"
)


def check(facts: Facts) -> Iterator[Finding]:
    error = facts.deep.jit_error if facts.deep else None
    if error:
        yield found(
            ID,
            Severity.ERROR,
            "a small kernel cannot be compiled for this GPU",
            detail=error,
            fix="install a CUDA toolkit that knows the GPU and a C++ compiler; set CUDA_HOME",
        )
