"""Life: one server from its start to the moment when nothing of it is left."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.core.child_env import child_environment
from dflashctl.core.diagnose import diagnose
from dflashctl.core.verdict import EndFacts, Verdict, judge
from dflashctl.edges.secret_file import write_server_config
from dflashctl.ports.server import StartRefused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dflashctl.core.plan import Plan
    from dflashctl.core.server_state import State
    from dflashctl.edges.pump import Pump
    from dflashctl.ports.server import Launcher, ServerHandle

_LOG_END_S = 1.0


class Life:
    """Made by `prepare`, which holds the server back until `handle.go`. `number` counts lives from 1."""

    def __init__(self, *, number: int, handle: ServerHandle, pump: Pump, secret: Path | None) -> None:
        self.number = number
        self.handle = handle
        self._pump = pump
        self._secret = secret
        self._returncode: int | None = None
        self.ended = False
        self.cleaning = False
        self._log_end_at: float | None = None

    def has_ended(self) -> bool:
        """Whether the main process has; asked until it says yes."""
        if not self.ended:
            self._returncode = self.handle.poll()
            self.ended = self._returncode is not None
        return self.ended

    def clean_up(self) -> bool:
        """Kill what is left; True once nothing is, and the log has been read to its end (or nearly)."""
        self.handle.kill()
        if self.handle.leftovers():
            return False
        if self._log_end_at is None:
            self._log_end_at = time.monotonic() + _LOG_END_S
        return self._pump.finish(0.0) or time.monotonic() > self._log_end_at

    def close(self) -> None:
        self.forget_secret()
        self.handle.close()

    def forget_secret(self) -> None:
        """The server has read its keys."""
        if self._secret is not None:
            with suppress(OSError):
                self._secret.unlink()
            self._secret = None

    def verdict(self, state: State) -> Verdict:
        from dflashctl.edges.signature_store import load_signatures

        lines = self._pump.evidence()
        facts = EndFacts(
            returncode=self._returncode,
            oom_kills=self.handle.oom_kills(),
            step=state.step,
            was_ready=state.ready_at is not None,
            lines=lines,
        )
        return judge(facts, diagnose(lines, load_signatures()))


def prepare(
    number: int,
    plan: Plan,
    environ: Mapping[str, str],
    *,
    launcher: Launcher,
    pump: Pump,
    runtime: Path,
    key: str | None,
) -> Life:
    """A new life, its output pumped, its program not yet running; StartRefused when it cannot be."""
    temporary = runtime / "tmp"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(mode=0o700, exist_ok=True)
    secret = write_server_config(runtime, key) if key else None
    if secret is not None:
        plan = replace(plan, argv=(*plan.argv, "--config", str(secret)))
    try:
        env = child_environment(environ, plan.env, temporary=str(temporary), host=plan.host)
        handle = launcher.prepare(plan, env, runtime)
    except BaseException:
        if secret is not None:
            secret.unlink(missing_ok=True)
        raise
    life = Life(number=number, handle=handle, pump=pump, secret=secret)
    try:
        pump.start(handle.log_descriptor)
    except RuntimeError as error:
        handle.kill()
        life.close()
        raise StartRefused(f"no thread can be started: {error}", permanent=False) from error
    return life
