"""deep_torch: the engine's torch imported where CUDA has started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.check import found
from dflashctl.core.findings import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dflashctl.core.facts import Facts
    from dflashctl.core.findings import Finding

ID = "deep_torch"
NEEDS = ("tried_torch",)
SOURCE = (
    "pytorch/pytorch#131284: torch is installed, and importing it ends with `libcudart.so.12: cannot open shared "
    "object file`"
)


def check(facts: Facts) -> Iterator[Finding]:
    error = facts.deep.torch_error if facts.deep else None
    if error:
        yield found(
            ID,
            Severity.ERROR,
            f"the engine's torch cannot be imported: {error}",
            fix='import it by hand with the interpreter of --python: python3 -X faulthandler -c "import torch"',
        )
