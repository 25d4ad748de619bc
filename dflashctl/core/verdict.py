"""Verdict: how a server ended, in words, and whether starting it again could help."""

from __future__ import annotations

import signal
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dflashctl.core.diagnose import EVIDENCE_LINES, Diagnosis
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.instance import LastExit, Reason
from dflashctl.core.routine_lines import telling
from dflashctl.core.start_phase import StartPhase

if TYPE_CHECKING:
    from collections.abc import Sequence

_USAGE = 2
# Reasons that the server's log cannot show.
_OUTSIDE = frozenset({"port_taken", "cannot_start", "wrong_model", "no_speculation"})
_FIXES = {
    "port_taken": "choose another port with --port, or stop its owner",
    "cannot_start": "name the interpreter that has the engine: --python PATH",
    "wrong_model": "the model's name in the profile (server.served_model_name) and what the engine serves must agree",
    "no_speculation": "look in the log whether the engine refused the draft: dflashctl logs NAME --phase load_draft",
    "no_progress": "stacks.txt, one folder above the log, shows where it stood; a slow disk needs a longer timing.progress_timeout_s",
    "not_ready": "raise timing.ready_timeout_s in the profile when the start is merely long",
    "hang": "stacks.txt, one folder above the log, shows where it stood; report it to the engine's project with the log",
    "killed": "nothing of dflashctl's did it: look in dmesg for the kernel's memory killer, and for who else ends processes",
    "unclean_end": "look in dmesg for the kernel's memory killer; as a unit or in a container it is started again",
    "unkillable": "look at the processes with ps: a driver call that never returns needs a reboot",
}


@dataclass(frozen=True, kw_only=True)
class EndFacts:
    """`returncode` as subprocess gives it; `oom_kills` since the start, None unknown; `step` where the start was."""

    returncode: int | None
    oom_kills: int | None
    step: StartPhase | None
    was_ready: bool
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    last_exit: LastExit
    reason: Reason
    permanent: bool


def judge(facts: EndFacts, diagnosis: Diagnosis | None) -> Verdict:
    """The log's first cause decides; a status alone never says "out of memory", only the kernel's counter does."""
    how = _how(facts.returncode)
    evidence = diagnosis.evidence if diagnosis else telling(facts.lines, EVIDENCE_LINES)
    if diagnosis is not None and diagnosis.id != "unknown":
        text = f"{diagnosis.cause} ({how})"
        verdict = _verdict(facts, diagnosis.id, text, evidence, permanent=diagnosis.permanent)
        return replace(verdict, last_exit=replace(verdict.last_exit, fix=diagnosis.fix))
    if facts.oom_kills:
        text = (
            f"killed for memory: the kernel's counter of the control group rose by {facts.oom_kills} ({how})"
        )
        return _verdict(facts, "oom", text, evidence, permanent=False)
    cause = f"{diagnosis.cause} ({how})" if diagnosis else f"the server ended: {how}"
    permanent = _refused_early(facts)
    return _verdict(facts, _kind(facts.returncode), cause, evidence, permanent=permanent)


def _verdict(facts: EndFacts, kind: str, text: str, evidence: tuple[str, ...], *, permanent: bool) -> Verdict:
    code = facts.returncode
    last = LastExit(
        status=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        kind=kind,
        evidence=evidence[-EVIDENCE_LINES:],
    )
    return Verdict(last_exit=last, reason=Reason(code=kind, text=text), permanent=permanent)


def _refused_early(facts: EndFacts) -> bool:
    """An exit of its own accord before anything was loaded comes again: same arguments, same machine."""
    if facts.was_ready or facts.returncode is None or facts.returncode <= 0:
        return False
    return facts.returncode == _USAGE or facts.step in {None, StartPhase.RESOLVE}


def _kind(code: int | None) -> str:
    if code is None:
        return "lost"
    if code < 0:
        return "killed"
    return "exited"


def _how(code: int | None) -> str:
    if code is None:
        return "its status is not known"
    if code >= 0:
        return f"exit status {code}"
    return f"killed by {signal_name(-code)}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def failure_finding(reason: Reason, last_exit: LastExit | None) -> Finding:
    """Why it failed, with the log's lines and what to do."""
    known = last_exit is not None and last_exit.kind == reason.code
    fix = (last_exit.fix if last_exit is not None and known else None) or _FIXES.get(reason.code)
    evidence = last_exit.evidence if last_exit is not None and reason.code not in _OUTSIDE else ()
    return Finding(
        id=reason.code,
        severity=Severity.ERROR,
        summary=reason.text,
        detail="\n".join(evidence) or None,
        fix=fix,
    )


def exit_status_of(last: LastExit | None) -> int | None:
    """What a shell would show: 128 + n for a signal; None when nothing is known."""
    if last is None:
        return None
    return 128 + last.signal if last.signal is not None else last.status
