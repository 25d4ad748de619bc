"""Env: the outside world as one object, wired lazily; tests replace any part of it."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import Permanent, UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dflashctl.core.progress import Progress
    from dflashctl.ports.chat_template import ChatTemplates
    from dflashctl.ports.clock import Clock
    from dflashctl.ports.datasets import DataSets
    from dflashctl.ports.engines import EngineProbe
    from dflashctl.ports.hub import Hub
    from dflashctl.ports.instances import Instances
    from dflashctl.ports.machine import MachineProbe
    from dflashctl.ports.profiles import ProfileStore
    from dflashctl.ports.web import Web
    from dflashctl.ports.weight_store import WeightStore


_LONGEST_PATH = 1024


def _silent(_event: Progress) -> None:
    """Drop progress, for callers that do not watch."""


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except OSError as error:
        raise Permanent(
            f"the working folder cannot be used: {error.strerror}", hint="cd to a folder that exists"
        ) from error


class Env:
    """The parts are made at first use, so that a command pays only for what it touches.

    `parts` replaces any of them by name: Env(machine=FakeMachine(...)).
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        notify: Callable[[Progress], None] = _silent,
        show_line: Callable[[str], None] | None = None,
        **parts: object,
    ) -> None:
        self.environ: Mapping[str, str] = dict(os.environ) if environ is None else environ
        self.cwd = cwd or _working_folder()
        self.python = sys.executable
        self.is_first_process = os.getpid() == 1  # of a container, whose log is read from outside
        self.notify = notify
        self.show_line = show_line
        for name in parts:
            if not isinstance(getattr(type(self), name, None), cached_property):
                msg = f"Env has no part {name!r}"
                raise TypeError(msg)
        self.__dict__.update(parts)

    def shipped(self, kind: str, name: str) -> Path:
        """A file that ships with dflashctl: `kind` is profiles, templates or completions."""
        from dflashctl.edges.shipped import shipped_folder

        return shipped_folder(kind) / name

    def api_key(self) -> str | None:
        """The key that servers are started with and asked with, from DFLASHCTL_API_KEY or DFLASHCTL_API_KEY_FILE."""
        from dflashctl.edges.secret_file import api_key

        return api_key(self.environ)

    def read_bytes(self, path: str) -> bytes | None:
        """A file's content, None when it cannot be read."""
        try:
            return (self.cwd / path).read_bytes()
        except OSError:
            return None

    def read_input(self, source: str) -> str:
        """Text given as itself, as the name of a file, or as "-" for standard input."""
        if source == "-":
            return sys.stdin.read()
        path = self.cwd / source
        try:
            return (
                path.read_text(encoding="utf-8") if len(source) < _LONGEST_PATH and path.is_file() else source
            )
        except (OSError, UnicodeDecodeError) as error:
            msg = f"{source!r} cannot be read: {error}"
            raise UsageProblem(msg, hint="give the text itself, a text file, or -") from error

    def glance(self, host: str, port: int, path: str, timeout_s: float) -> bytes | None:
        """A page of a server on this host (200 only), None when there is no such answer."""
        from dflashctl.edges.glance import glance

        return glance(host, port, path, timeout_s)

    @cached_property
    def cores(self) -> int:
        """The cores that this process may use."""
        from dflashctl.edges.cores import usable_cores

        return usable_cores()

    @cached_property
    def clock(self) -> Clock:
        from dflashctl.edges.clock import SystemClock

        return SystemClock()

    @cached_property
    def profiles(self) -> ProfileStore:
        from dflashctl.edges.profile_store import FileProfileStore

        return FileProfileStore(cwd=self.cwd, environ=self.environ)

    @cached_property
    def machine(self) -> MachineProbe:
        from dflashctl.edges.machine_probe import SystemMachineProbe

        return SystemMachineProbe(environ=self.environ)

    @cached_property
    def engines(self) -> EngineProbe:
        from dflashctl.edges.engine_probe import InstalledEngines
        from dflashctl.engines.sglang import builds

        return InstalledEngines(environ=self.environ, knowledge=builds)

    @cached_property
    def hub(self) -> Hub:
        from dflashctl.edges.hub import HuggingFaceHub

        return HuggingFaceHub(environ=self.environ)

    @cached_property
    def weight_store(self) -> WeightStore:
        from dflashctl.edges.weight_store import FileWeightStore

        return FileWeightStore(environ=self.environ)

    @cached_property
    def instances(self) -> Instances:
        from dflashctl.edges.instances import FileInstances

        return FileInstances(environ=self.environ)

    @cached_property
    def web(self) -> Web:
        from dflashctl.edges.web import HttpWeb

        return HttpWeb()

    @cached_property
    def datasets(self) -> DataSets:
        from dflashctl.edges.datasets import HubDataSets

        return HubDataSets(environ=self.environ)

    @cached_property
    def chat_templates(self) -> ChatTemplates:
        from dflashctl.edges.chat_template import JinjaTemplates

        return JinjaTemplates()
