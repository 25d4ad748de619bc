"""`diagnose`: the first cause in a log, the lines that show it, and the fix."""

from __future__ import annotations

import time
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.chosen import chosen, said_which
from dflashctl.commands.full_disk import full_disk
from dflashctl.core.diagnosis_view import DiagnosisView
from dflashctl.core.endings import ending_of, last_start, starts_since_up
from dflashctl.core.errors import ExitCode, NotRunning
from dflashctl.core.instance import Phase, Reason
from dflashctl.core.log_line import parse, stamp
from dflashctl.core.report import Report
from dflashctl.core.status import status_of
from dflashctl.core.verdict import failure_finding
from dflashctl.supervise.explain import first_cause, read_log

if TYPE_CHECKING:
    from dflashctl.core.diagnose import Diagnosis
    from dflashctl.core.findings import Finding
    from dflashctl.core.instance import JournalEvent, Snapshot
    from dflashctl.env import Env

_STAMP_S = 0.001  # stamps are cut, the journal's times are rounded


def diagnose(env: Env, what: str | None = None) -> Report:
    """`what` is an instance, a file, or "-" for standard input; exit 0 whether or not a cause is found.

    Of an instance the last start counts, and when that shows nothing, the starts before it since `up`: why was it
    restarted? What was before the last `up` failed for reasons of its own. A start's log goes before what the
    supervisor wrote of its end: a hang or a kill has no line in any log.
    """
    if what is not None and (what == "-" or "/" in what or what not in env.instances.names()):
        log = read_log(what)
        return _told(what, len(log.lines), first_cause(log.lines), unpacked=log.unpacked)
    meant = chosen(env, what)
    report = _of_instance(env, meant)
    return replace(report, findings=(*report.findings, *said_which(env, what, meant), *full_disk(env)))


def _of_instance(env: Env, name: str | None) -> Report:
    if name is None:
        raise NotRunning("there is no log to explain", hint="dflashctl status")
    snapshot = env.instances.read(name)
    has_log = bool(env.instances.log_files(name))
    never = _never_started(snapshot, has_log=has_log)
    if never is not None:
        return _recorded(snapshot, 0, never, 0)
    if not has_log:
        raise NotRunning(f"{name!r} has no log", hint="dflashctl status")
    events = env.instances.events(name)
    starts = last_start(events)
    lives = _by_start(env.instances.log_tail(name), starts_since_up(events))
    read = 0
    for back, lines in enumerate(reversed(lives)):
        read += len(lines)
        found = first_cause(lines)
        if found is not None:
            return _told(name, read, found, back)
        ended = _ended(snapshot, events, start=starts - back, back=back)
        if ended is not None:
            return _recorded(snapshot, read, ended, back)
    return _told(name, read, None)


def _told(
    source: str, read: int, found: Diagnosis | None, back: int = 0, *, unpacked: bool = False
) -> Report:
    """What a log tells."""
    if found is None:
        return Report(
            command="diagnose", data=DiagnosisView(source=source, lines_read=read, unpacked=unpacked)
        )
    view = DiagnosisView(
        source=source,
        lines_read=read,
        unpacked=unpacked,
        restarts_since=back,
        id=found.id,
        cause=found.cause,
        fix=found.fix,
        permanent=found.permanent,
        evidence=found.evidence,
    )
    return Report(command="diagnose", data=view, findings=(found.finding(),))


def _never_started(snapshot: Snapshot, *, has_log: bool) -> Finding | None:
    """Why the last `up` ended before its server was started: what its log shows is of an earlier one."""
    record = snapshot.record
    if snapshot.supervised or record is None or record.phase is not Phase.FAILED or record.reason is None:
        return None
    never = record.reason.code == "not_started" or not has_log
    return failure_finding(record.reason, record.last_exit) if never else None


def _ended(snapshot: Snapshot, events: tuple[JournalEvent, ...], *, start: int, back: int) -> Finding | None:
    """What the supervisor wrote of the end of that start, or what its own end looks like."""
    if back == 0:
        reason = status_of(snapshot, now_s=time.time()).reason
        if reason is not None and reason.code == "unclean_end":
            return failure_finding(reason, None)
    text = ending_of(events, start)
    if text is None:
        return None
    record = snapshot.record
    last = record.last_exit if record and back <= 1 else None
    if record and record.reason and record.reason.text == text:  # a start that ended before it had a server
        return failure_finding(record.reason, last)
    return failure_finding(Reason(code=last.kind if last and last.kind else "unknown", text=text), last)


def _recorded(snapshot: Snapshot, read: int, ended: Finding, back: int) -> Report:
    """What the supervisor wrote down, with the last lines before it."""
    code = snapshot.record.exit_code if snapshot.record else None
    view = DiagnosisView(
        source=snapshot.name,
        lines_read=read,
        restarts_since=back,
        id=ended.id,
        cause=ended.summary,
        fix=ended.fix,
        permanent=code == ExitCode.PERMANENT,
        evidence=tuple((ended.detail or "").splitlines()),
        in_log=False,
    )
    return Report(command="diagnose", data=view, findings=(ended,))


def _by_start(lines: tuple[str, ...], begun: tuple[float, ...]) -> list[tuple[str, ...]]:
    """The lines of each start; what was before the first of them is left out.

    By their stamps, as two starts that both die in their first step look like one.
    """
    if not begun:
        return [lines]
    edges = [_moment(at_s - _STAMP_S) for at_s in begun]
    lives: list[list[str]] = [[] for _ in range(len(edges) + 1)]
    at = edges[0]
    for line in lines:
        at = parse(line).at or at
        lives[bisect_right(edges, at)].append(line)
    return [tuple(life) for life in lives[1:]]


def _moment(wall_s: float) -> str:
    """As the pump stamps a line, so that texts can be compared."""
    return stamp("", wall_s=wall_s, phase="").partition(" ")[0]
