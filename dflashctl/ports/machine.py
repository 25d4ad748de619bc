"""MachineProbe: what this host has, and saved hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dflashctl.core.deep import DeepFacts, DeepRequest
    from dflashctl.core.facts import PortUse
    from dflashctl.core.host import Folder
    from dflashctl.core.machine import GpuActivity, Machine


class MachineProbe(Protocol):
    def snapshot(self) -> Machine:
        """The host now; a missing driver or GPU is a state of the Machine (`gpu_problem`), not an error."""

    def survey(self, python: str) -> Machine:
        """`snapshot` with the host's facts and what the engine's interpreter `python` has installed."""

    def folders(self, planned: Mapping[str, str]) -> tuple[Folder, ...]:
        """The folders of `survey`, for an engine that is started here with `planned` in its environment."""

    def activity(self) -> GpuActivity:
        """The GPUs with only what changes while a server runs; empty without a driver. A lost GPU hides no other."""

    def port_use(self, host: str, port: int, purpose: str) -> PortUse:
        """Whether a server could listen there, and who does now."""

    def deep(self, request: DeepRequest) -> DeepFacts:
        """Start CUDA, copy between the GPUs, reduce over them, read weights, compile; takes seconds.

        Only tries and reports; everything runs in processes of its own with a limit in time.
        """

    def load(self, path: Path) -> Machine:
        """A saved machine (YAML or JSON); MachineError names the file, the place and the fix."""

    def save(self, machine: Machine, path: Path) -> None:
        """Write `machine` without serial numbers or host names."""
