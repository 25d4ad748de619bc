"""Detached start: what is known of a supervisor that was started in the background, whoever has the instance since."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError
from dflashctl.core.instance import ENDED, Phase
from dflashctl.core.plan_file import dump_plan
from dflashctl.supervise.journal import progress_of
from dflashctl.supervise.signals import stops_wait
from dflashctl.supervise.sweep import sweep_previous

if TYPE_CHECKING:
    from typing_extensions import Self

    from dflashctl.core.instance import InstanceRecord, Snapshot
    from dflashctl.core.plan import Plan
    from dflashctl.env import Env
    from dflashctl.ports.instances import OwnedInstance

LOCK_VARIABLE = "DFLASHCTL_LOCK_DESCRIPTOR"
_LOOK_S = 0.1
_BRIEF_S = 5.0
_FULL_S = 3.0


class DetachedStart:
    """The start is over when its process is: the record may be another owner's by then."""

    def __init__(self, env: Env, plan: Plan) -> None:
        self._env = env
        self._plan = plan
        self._name = plan.name
        self._process: subprocess.Popen[bytes] | None = None
        self._seen: InstanceRecord | None = None
        self.log = Path()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.returncode = 0  # it lives on, and is not ours to wait for

    def begin(self, owned: OwnedInstance | None = None) -> None:
        """Spawn the supervisor, which owns the instance from then on; `owned` is the instance if it is held already."""
        with owned if owned is not None else self._env.instances.own(self._name) as held:
            self.log = held.log_path
            sweep_previous(held)
            plan_file = held.write("plan.json", dump_plan(self._plan))
            said = str(self.log.with_name("supervisor.log"))
            with stops_wait():
                self._process = _spawn(plan_file, self._env, held.lock_descriptor(), said)

    @property
    def begun(self) -> bool:
        """Whether there is a supervisor that goes on without us."""
        return self._process is not None

    def wait(self) -> None:
        """Until its record says ready, or the supervisor is gone; what it does meanwhile is told.

        StateError when the disk stays full, so that there will be no record: the start goes on all the same.
        """
        told_at = self._env.clock.monotonic()
        while self._supervisor.poll() is None:
            record = self._env.instances.read(self._name).record
            if record is not None and self._is_ours(record):
                if record != self._seen:
                    self._seen, told_at = record, self._env.clock.monotonic()
                    self._env.notify(progress_of(record))
                if record.phase is Phase.READY:
                    return
            full = self._env.instances.full_folder()
            if full is None:
                told_at = self._env.clock.monotonic()
            elif self._env.clock.monotonic() - told_at > _FULL_S:
                raise self._cannot_follow(full)
            self._env.clock.sleep(_LOOK_S)

    def outcome(self) -> tuple[Snapshot, int | None]:
        """The instance as this start left it, and the supervisor's exit status: negative for a signal, None while it lives.

        What another owner has written since is not looked at: its own last record counts.
        """
        status = self._supervisor.poll()  # before the look: what it wrote at its end is there by now
        found = self._settled()
        record = found.record
        if record is not None and self._is_ours(record):
            over = status is None and record.phase in ENDED
            return found, (record.exit_code or 0) if over else status
        if status is None or self._seen is None:
            return found, status
        phase = Phase.STOPPED if status == 0 else self._seen.phase
        mine = replace(self._seen, phase=phase, ready=False, healthy=None)
        return replace(found, supervised=False, record=mine), status

    def _settled(self) -> Snapshot:
        """Once nobody holds the lock only to put the instance in order: what the supervisor wrote is hidden till then."""
        end = self._env.clock.monotonic() + _BRIEF_S
        while (found := self._env.instances.read(self._name)).brief and self._env.clock.monotonic() < end:
            self._env.clock.sleep(_LOOK_S)
        return found

    def _cannot_follow(self, full: str) -> StateError:
        return StateError(
            f"the state folder '{full}' is full: no space left on device, so the start of {self._name!r} cannot be"
            " followed; it goes on in the background",
            hint=f"make room there, then: dflashctl status {self._name}",
        )

    def _is_ours(self, record: InstanceRecord) -> bool:
        return record.supervisor is not None and record.supervisor.pid == self._supervisor.pid

    @property
    def _supervisor(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "it has not begun"  # noqa: S101
        return self._process


def _spawn(plan_file: Path, env: Env, lock: int, log: str) -> subprocess.Popen[bytes]:
    try:
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(
            f"'{log}' cannot be written: {error.strerror}", hint="remove it when it is a link"
        ) from error
    try:
        return subprocess.Popen(
            [sys.executable, "-m", "dflashctl.supervise", str(plan_file)],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
            pass_fds=(lock,),
            cwd=env.cwd,
            env={**env.environ, LOCK_VARIABLE: str(lock)},
        )
    finally:
        os.close(descriptor)
