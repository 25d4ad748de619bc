"""Tools: everything the loop works with, wired once for one supervision."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.core.engine import Engine
    from dflashctl.core.pace import Pace
    from dflashctl.core.plan import Plan
    from dflashctl.edges.guard_process import GuardProcess
    from dflashctl.edges.log_file import LogFile
    from dflashctl.edges.pump import Pump
    from dflashctl.edges.reaper import Reaper
    from dflashctl.edges.screen import Screen
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance
    from dflashctl.ports.server import Launcher
    from dflashctl.supervise.journal import Journal
    from dflashctl.supervise.log_reader import LineLabels
    from dflashctl.supervise.notifier import Notifier
    from dflashctl.supervise.signals import Signals
    from dflashctl.supervise.watch import Watch


@dataclass(kw_only=True)
class Tools:
    """`sink` shows a line, None for nobody."""

    plan: Plan
    env: Env
    owned: OwnedInstance
    engine: Engine
    pace: Pace
    key: str | None
    signals: Signals
    reaper: Reaper
    guard: GuardProcess
    launcher: Launcher
    log: LogFile
    pump: Pump
    screen: Screen
    sink: Callable[[str], None] | None
    watch: Watch
    journal: Journal
    notifier: Notifier
    labels: LineLabels

    def show(self, line: str) -> None:
        """Show it if somebody looks and keeps up."""
        if self.sink is not None:
            self.screen.post(partial(self.sink, line))
