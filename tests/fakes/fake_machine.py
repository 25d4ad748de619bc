"""FakeMachine: a MachineProbe that answers with a given machine; files go through the real edge."""

from __future__ import annotations

from dflashctl.core.deep import DeepFacts
from dflashctl.core.engine_folders import moved
from dflashctl.core.facts import PortUse
from dflashctl.core.host import Folder
from dflashctl.core.machine import GpuActivity
from dflashctl.edges.machine_file import read_machine, write_machine


class FakeMachine:
    """`taken` maps a port to its owner's (pid, name); `attempts` is what --deep finds.

    `elsewhere` are the folders that take the place of the machine's where a plan's environment moves some.
    """

    def __init__(self, machine, *, taken=None, attempts=None, elsewhere=()):
        self.machine = machine
        self.elsewhere = {folder.kind: folder for folder in elsewhere}
        self.taken = dict(taken or {})
        self.attempts = attempts or DeepFacts()
        self.surveyed = []
        self.tried = []

    def snapshot(self):
        return self.machine

    def survey(self, python):
        self.surveyed.append(python)
        return self.machine

    def folders(self, planned):
        moves = moved(planned)
        return tuple(
            self.elsewhere.get(folder.kind, Folder(kind=folder.kind, path=moves[folder.kind]))
            if folder.kind in moves
            else folder
            for folder in self.machine.host.folders
        )

    def activity(self):
        return GpuActivity(gpus=self.machine.gpus, unreadable=self.machine.gpus_unreadable)

    def port_use(self, host, port, purpose):
        if port not in self.taken:
            return PortUse(port=port, purpose=purpose, free=True)
        pid, name = self.taken[port]
        return PortUse(port=port, purpose=purpose, free=False, owner_pid=pid, owner_name=name)

    def deep(self, request):
        self.tried.append(request)
        return self.attempts

    def load(self, path):
        return read_machine(path)

    def save(self, machine, path):
        write_machine(machine, path)
