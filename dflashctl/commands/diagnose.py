"""`diagnose`: the first cause in a log, the lines that show it, and the fix."""

from __future__ import annotations

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

    Of an instance's log only the last start counts: earlier ones failed for reasons of their own.
    """
    source, lines = _lines(env, what)
    found = first_cause(lines)
    if found is None:
        return Report(command="diagnose", data=DiagnosisView(source=source, lines_read=len(lines)))
    view = DiagnosisView(
        source=source,
        lines_read=len(lines),
        id=found.id,
        cause=found.cause,
        fix=found.fix,
        permanent=found.permanent,
        evidence=found.evidence,
    )
    return Report(command="diagnose", data=view, findings=(found.finding(),))


def _lines(env: Env, what: str | None) -> tuple[str, tuple[str, ...]]:
    if what is not None and (what == "-" or "/" in what or what not in env.instances.names()):
        return what, read_log(what)
    name = chosen(env, what)
    if name is None or not env.instances.log_files(name):
        raise NotRunning(
            "there is no log to explain" if name is None else f"{name!r} has no log", hint="dflashctl status"
        )
    return name, _last_life(env.instances.log_tail(name))


def _last_life(lines: tuple[str, ...]) -> tuple[str, ...]:
    """From the last line that begins a start: the first of a run of lines stamped with its first step."""
    for number in range(len(lines) - 1, 0, -1):
        if _BEGIN in lines[number] and _BEGIN not in lines[number - 1]:
            return lines[number:]
    return lines
