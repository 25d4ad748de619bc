"""`diagnose`: the first cause in a log, the lines that show it, and the fix."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from dflashctl.commands.chosen import chosen
from dflashctl.core.diagnosis_view import DiagnosisView
from dflashctl.core.errors import NotRunning
from dflashctl.core.report import Report
from dflashctl.supervise.explain import first_cause, read_log

if TYPE_CHECKING:
    from dflashctl.env import Env

_BEGIN = " loading.resolve | "


def diagnose(env: Env, what: str | None = None) -> Report:
    """`what` is an instance, a file, or "-" for standard input; exit 0 whether or not a cause is found.

    Of an instance's log the last start counts, and when that shows nothing, the starts before it since `up`: why was
    it restarted? What was before the last `up` failed for reasons of its own.
    """
    source, lives = _lives(env, what)
    causes = ((back, first_cause(lines)) for back, lines in enumerate(reversed(lives)))
    back, found = next((pair for pair in causes if pair[1] is not None), (0, None))
    read = sum(len(lines) for lines in lives[-1 - back :])
    if found is None:
        return Report(command="diagnose", data=DiagnosisView(source=source, lines_read=read))
    view = DiagnosisView(
        source=source,
        lines_read=read,
        restarts_since=back,
        id=found.id,
        cause=found.cause,
        fix=found.fix,
        permanent=found.permanent,
        evidence=found.evidence,
    )
    return Report(command="diagnose", data=view, findings=(found.finding(),))


def _lives(env: Env, what: str | None) -> tuple[str, list[tuple[str, ...]]]:
    """The source's name and its lines by start, the last start last."""
    if what is not None and (what == "-" or "/" in what or what not in env.instances.names()):
        return what, [read_log(what)]
    name = chosen(env, what)
    if name is None or not env.instances.log_files(name):
        raise NotRunning(
            "there is no log to explain" if name is None else f"{name!r} has no log", hint="dflashctl status"
        )
    attempts = [event.attempt for event in env.instances.events(name) if event.attempt is not None]
    return name, _by_start(env.instances.log_tail(name))[-(attempts[-1] if attempts else 1) :]


def _by_start(lines: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Cut before each line that begins a start: the first of a run of lines stamped with its first step."""
    begins = [n for n in range(1, len(lines)) if _BEGIN in lines[n] and _BEGIN not in lines[n - 1]]
    edges = [0, *begins, len(lines)]
    return [lines[a:b] for a, b in pairwise(edges)]
