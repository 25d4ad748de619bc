"""What `up` answers once it started something, or found it up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.plan import Plan
    from dflashctl.core.smoke import Proof


@dataclass(frozen=True, kw_only=True)
class UpResult:
    """`phase` is the instance's at the end of the call: ready with --detach, stopped after a foreground run."""

    name: str
    url: str
    phase: str
    ready: bool
    already_up: bool = False
    plan: Plan | None = None
    proofs: tuple[Proof, ...] = ()
    accept_length: float | None = None
