"""FakeInstances: one instance that runs, as doctor reads it."""

from __future__ import annotations

import time

from dflashctl.core.instance import Identity, InstanceRecord, Phase, Served, Snapshot


class FakeInstances:
    """`pids` are the processes of the only instance, `name`; `gpus` its UUIDs."""

    def __init__(self, name, *, phase, port, pids, gpus=()):
        self.name = name
        self.pids = tuple(pids)
        served = Served(
            profile=name,
            engine="sglang",
            engine_version="0.5.17",
            runtime="process",
            host="127.0.0.1",
            port=port,
            served_model_name=name,
            fingerprint="",
            gpus=tuple(gpus),
        )
        first = min(self.pids, default=1)
        self.record = InstanceRecord(
            name=name,
            phase=Phase(phase),
            phase_since_s=time.time(),
            served=served,
            server=Identity(boot_id="", pid_namespace=0, pid=first, start_ticks=0, session=first),
        )

    def read(self, name):
        if name != self.name:
            return Snapshot(name=name, supervised=False)
        return Snapshot(name=name, supervised=True, record=self.record)

    def members(self, name):
        return self.pids if name == self.name else ()
