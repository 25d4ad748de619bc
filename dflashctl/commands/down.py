"""`down`: stop a server, and be done only when its processes, its port and its GPU memory are given back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.chosen import chosen_to_stop
from dflashctl.core.down_result import DownResult
from dflashctl.core.errors import Busy, CheckFailed, ExitCode
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.instance import ENDED, Phase
from dflashctl.core.progress import Progress
from dflashctl.core.report import Outcome, Report, failure
from dflashctl.supervise.stop import ask_to_stop, force_stop, member_pids, owner_of, port_owner
from dflashctl.supervise.sweep import sweep_previous

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.core.instance import Identity, InstanceRecord, Served
    from dflashctl.core.machine import Gpu
    from dflashctl.env import Env

_LOOK_S = 0.05
_OWNERS = 5
_MARGIN_S = 10.0
_PORT_LIMIT_S = 5.0
_GPU_LIMIT_S = 30.0
_GPU_LOOK_S = 0.5
_GPU_IDLE_BYTES = 4 * 1024**3


def down(env: Env, name: str | None = None) -> Report:
    """Exit 0 when nothing is left, also when nothing ran; 1 with the owners when port or GPU memory stay taken."""
    began = env.clock.monotonic()
    meant = chosen_to_stop(env, name)
    if meant is None or meant not in env.instances.names():
        return Report(command="down", data=DownResult(name=meant, already_stopped=True, took_s=0.0))
    record = env.instances.read(meant).record
    served = record.served if record else None
    ours = _gpu_pids(env, record, served.gpus) if record and served else frozenset()
    was_up, forced, swept, doubtful = _end(env, meant)
    result = DownResult(
        name=meant,
        already_stopped=not was_up and not swept,
        took_s=round(env.clock.monotonic() - began, 3),
        swept=swept,
        forced=forced,
        port=served.port if served else None,
        gpus=served.gpus if served else (),
    )
    if served is not None and not result.already_stopped:
        try:
            _wait_for_port(env, served)
            _wait_for_gpus(env, served.gpus, ours)
        except CheckFailed as error:
            return failure("down", error, data=result)
    return Report(command="down", data=result, outcome=Outcome.OK, exit_code=ExitCode.OK, findings=doubtful)


def _end(env: Env, name: str) -> tuple[bool, bool, int, tuple[Finding, ...]]:
    """Until nobody owns it: a command that was starting it may have handed its lock to a supervisor meanwhile.

    Whether it ran, whether it had to be killed, how many processes were swept, and which were left as doubtful.
    """
    was_up = forced = False
    for _ in range(_OWNERS):
        up, killed = _stop(env, name)
        was_up, forced = was_up or up, forced or killed
        with suppress(Busy):
            return was_up, forced, *_clear(env, name)
    raise Busy(f"{name!r} is started again and again by somebody else", hint=f"dflashctl status {name}")


def _stop(env: Env, name: str) -> tuple[bool, bool]:
    """Ask, insist, kill; whether it ran, and whether it had to be killed."""
    snapshot = env.instances.read(name)
    if not snapshot.supervised:
        return False, False
    served = snapshot.record.served if snapshot.record else None
    limit_s = (served.stop_limit_s if served else 0.0) + _MARGIN_S
    env.notify(Progress(step="draining", text=f"stopping {name}"))
    if _wait(env, _Asked(env, name, join=True).gone, limit_s):
        return True, False
    insisted = _Asked(env, name, join=False)
    if _wait(env, insisted.gone, _MARGIN_S):
        return True, False
    force_stop(env.instances.read(name))
    if _wait(env, insisted.gone, _MARGIN_S):
        return True, True
    raise Busy(f"the supervisor of {name!r} cannot be stopped", hint=f"dflashctl status {name}")


class _Asked:
    """Each owner is asked once to stop; with `join` not even once when it stops already, as a second TERM would kill."""

    def __init__(self, env: Env, name: str, *, join: bool) -> None:
        self._env = env
        self._name = name
        self._join = join
        self._whom: Identity | None = None

    def gone(self) -> bool:
        """Ask as soon as the owner is known (one that has only just taken over may not have signed yet)."""
        snapshot = self._env.instances.read(self._name)
        owner = owner_of(snapshot)
        if snapshot.supervised and not snapshot.brief and owner is not None and owner != self._whom:
            record = snapshot.record
            if (self._join and record is not None and record.phase is Phase.DRAINING) or ask_to_stop(
                snapshot
            ):
                self._whom = owner
        return not snapshot.supervised


def _clear(env: Env, name: str) -> tuple[int, tuple[Finding, ...]]:
    """Under the lock: end what an unclean end left, and write down that it is over; how many were left."""
    with env.instances.own(name, brief=True) as owned:
        swept = sweep_previous(owned)
        if owned.previous is not None and owned.previous.phase not in ENDED:
            owned.record(_over(owned.previous))
    return swept.ended, (_left_alone(swept.doubtful),) if swept.doubtful else ()


def _left_alone(pids: tuple[int, ...]) -> Finding:
    return Finding(
        id="left_alone",
        severity=Severity.WARNING,
        summary="left alive, as nothing shows that they were the server's: "
        + ", ".join(f"pid {pid}" for pid in pids),
        detail="they bear a session number that the server had",
        fix="look at them with ps",
    )


def _over(record: InstanceRecord) -> InstanceRecord:
    return replace(record, phase=Phase.STOPPED, sessions=(), server=None, ready=False, healthy=None)


def _wait_for_port(env: Env, served: Served) -> None:
    if not _wait(env, lambda: port_owner(served) is None, _PORT_LIMIT_S):
        raise CheckFailed(f"port {served.port} is still taken by {port_owner(served)}")


def _gpu_pids(env: Env, record: InstanceRecord, gpus: tuple[str, ...]) -> frozenset[int]:
    """Which of the server's processes hold memory of its GPUs."""
    if not gpus:
        return frozenset()
    members = member_pids(record)
    return frozenset(p.pid for gpu in _gpus(env, gpus) for p in gpu.processes if p.pid in members)


def _gpus(env: Env, keys: tuple[str, ...]) -> tuple[Gpu, ...]:
    machine = env.machine.snapshot()
    return tuple(gpu for key in keys if (gpu := machine.gpu(key)) is not None)


def _wait_for_gpus(env: Env, keys: tuple[str, ...], ours: frozenset[int]) -> None:
    if keys and not _wait(env, lambda: not _taken(env, keys, ours), _GPU_LIMIT_S, look_s=_GPU_LOOK_S):
        raise CheckFailed(
            f"GPU memory is not back: {'; '.join(_taken(env, keys, ours))}", hint="dflashctl doctor"
        )


def _taken(env: Env, keys: tuple[str, ...], ours: frozenset[int]) -> tuple[str, ...]:
    return tuple(why for gpu in _gpus(env, keys) if (why := _why_taken(gpu, ours)) is not None)


def _why_taken(gpu: Gpu, ours: frozenset[int]) -> str | None:
    """Memory that our ended processes hold, or nobody that can be seen; what strangers hold is theirs."""
    held = [process for process in gpu.processes if process.pid in ours]
    if held:
        return f"GPU {gpu.index} is still held by {', '.join(f'pid {p.pid}' for p in held)}"
    if gpu.processes or gpu.memory_free_bytes is None or gpu.memory_total_bytes is None:
        return None
    used = gpu.memory_total_bytes - gpu.memory_free_bytes
    return f"GPU {gpu.index} still has {used / 1e9:.1f} GB in use" if used > _GPU_IDLE_BYTES else None


def _wait(env: Env, condition: Callable[[], bool], limit_s: float, *, look_s: float = _LOOK_S) -> bool:
    end = env.clock.monotonic() + limit_s
    while not condition():
        if env.clock.monotonic() > end:
            return False
        env.clock.sleep(look_s)
    return True
