"""`logs`: a server's log, its end, one phase of it, or what is still to come."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.chosen import chosen, said_which
from dflashctl.core.errors import ExitCode, NotRunning, UsageProblem
from dflashctl.core.instance import Phase
from dflashctl.core.log_line import parse
from dflashctl.core.log_view import LogView
from dflashctl.core.report import Outcome, Report
from dflashctl.core.start_phase import StartPhase

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dflashctl.core.log_line import LogLine
    from dflashctl.env import Env

_FOLLOW_S = 0.2


def logs(
    env: Env, name: str | None = None, *, follow: bool = False, lines: int = 100, phase: str | None = None
) -> Report | Iterator[Report]:
    """The last `lines` lines; exit 3 with them when the instance does not run any more.

    With `follow` an iterator of reports, each with the lines that are new, until the instance ends or Ctrl-C.
    """
    meant = chosen(env, name)
    if meant is None or not env.instances.log_files(meant):
        raise NotRunning(
            f"there is no log of {meant!r}" if meant else "nothing was started yet", hint="dflashctl status"
        )
    _check_phase(phase)
    which = said_which(env, name, meant)
    if follow:
        return _follow(env, meant, lines, phase)
    running = env.instances.read(meant).supervised
    report = _report(env, meant, _tail(env, meant, lines, phase), more=False, running=running)
    return replace(report, findings=which)


def _follow(env: Env, name: str, count: int, phase: str | None) -> Iterator[Report]:
    new_lines = env.instances.log_follow(name)
    running = env.instances.read(name).supervised
    yield _report(env, name, _tail(env, name, count, phase), more=False, running=running)
    try:
        while True:
            running = env.instances.read(name).supervised
            found = _of_phase(map(parse, new_lines()), phase)
            if found or not running:
                yield _report(env, name, found, more=True, running=running)
            if not running:
                return
            env.clock.sleep(_FOLLOW_S)
    except KeyboardInterrupt:
        yield _report(env, name, (), more=True, running=running)


def _tail(env: Env, name: str, count: int, phase: str | None) -> tuple[LogLine, ...]:
    if phase is None:
        return tuple(map(parse, env.instances.log_tail(name, count)))
    found = _of_phase(map(parse, env.instances.log_tail(name)), phase)
    return found[len(found) - min(count, len(found)) :]


def _of_phase(lines: Iterable[LogLine], phase: str | None) -> tuple[LogLine, ...]:
    return tuple(line for line in lines if phase is None or line.is_of(phase))


def _check_phase(phase: str | None) -> None:
    known = [p.value for p in (*Phase, *StartPhase)]
    if phase is not None and phase not in known:
        raise UsageProblem(f"there is no phase {phase!r}", hint=f"phases: {', '.join(dict.fromkeys(known))}")


def _report(env: Env, name: str, lines: tuple[LogLine, ...], *, more: bool, running: bool) -> Report:
    """`running` is asked once for each: a `down` that puts a dead instance in order owns it for an instant."""
    files = env.instances.log_files(name)
    return Report(
        command="logs",
        data=LogView(name=name, lines=lines, path=str(files[-1]) if files else None, more=more),
        outcome=Outcome.OK if running else Outcome.PARTIAL,
        exit_code=ExitCode.OK if running else ExitCode.NOT_RUNNING,
    )
