"""MachineProbe: what this host has, and saved hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from dflashctl.core.machine import Machine


class MachineProbe(Protocol):
    def snapshot(self) -> Machine:
        """This host now; a missing driver or GPU is a state of the Machine (`gpu_problem`), not an error."""

    def load(self, path: Path) -> Machine:
        """A saved machine (YAML or JSON); MachineError names the file, the place and the fix."""

    def save(self, machine: Machine, path: Path) -> None:
        """Write `machine` without serial numbers or host names."""
