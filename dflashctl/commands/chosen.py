"""Which instance a command means when it is called with or without a name."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from dflashctl.core.errors import StateError, UsageProblem
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.instance import ENDED, check_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dflashctl.core.instance import Snapshot
    from dflashctl.env import Env


def chosen(env: Env, name: str | None) -> str | None:
    """`name`, else the only instance that runs, else the one that ended last; None when there is none to mean."""
    if name is not None:
        return check_name(name, new=False)
    known = readable(env)
    running = _running(known)
    return running if running is not None else _last(known) or next(iter(env.instances.names()), None)


def chosen_to_stop(env: Env, name: str | None) -> str | None:
    """As `chosen`, but where none runs one that may have left something; None when nothing is left to stop."""
    if name is not None:
        return check_name(name, new=False)
    known = readable(env)
    running = _running(known)
    if running is not None or len(known) == 1:
        return running or known[0].name
    return _last(s for s in known if s.record is not None and s.record.phase not in ENDED)


def said_which(env: Env, name: str | None, meant: str | None) -> tuple[Finding, ...]:
    """A note of the instance that is `meant` when none was named, none runs, and there are several."""
    known = readable(env) if name is None and meant is not None else ()
    if len(known) <= 1 or any(snapshot.supervised for snapshot in known):
        return ()
    text = f"no instance runs; of the {len(known)} that are known {meant!r} ended last"
    return (Finding(id="ended_last", severity=Severity.NOTE, summary=text),)


def _running(known: Iterable[Snapshot]) -> str | None:
    """The only one that runs; UsageProblem when there are several."""
    running = tuple(snapshot.name for snapshot in known if snapshot.supervised)
    if len(running) > 1:
        raise UsageProblem(f"several instances run: {', '.join(running)}", hint="name one of them")
    return running[0] if running else None


def _last(known: Iterable[Snapshot]) -> str | None:
    last = max(known, key=lambda s: s.record.phase_since_s if s.record is not None else 0.0, default=None)
    return last.name if last is not None else None


def readable(env: Env) -> tuple[Snapshot, ...]:
    """All that is known here, but for what cannot be read: it must not keep the others from being used."""
    found = []
    for name in env.instances.names():
        with suppress(StateError):
            found.append(env.instances.read(name))
    return tuple(found)
