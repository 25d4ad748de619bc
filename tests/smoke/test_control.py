"""What servers and logs say does not drive the terminal."""

from __future__ import annotations

import io

import pytest

from dflashctl.core.findings import Finding, Severity
from dflashctl.core.progress import Progress
from dflashctl.core.report import ErrorInfo, Report
from dflashctl.core.smoke import Proof, ProofStatus, SmokeResult
from dflashctl.ui.control import tame
from dflashctl.ui.progress_line import ProgressLine
from dflashctl.ui.text import show

NASTY = "evil\x1b[2J\x1b]0;title\x07\x9b31m\x1b[31mred\x1b[0m\rback\x08"
HARMFUL = ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\x1b[31m", "\r", "\x08")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ümlaut, 中文…", "plain, ümlaut, 中文…"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38:2:1:2:3mtrue colour", "true colour"),
        ("\x1b[2J", "?[2J"),
        ("\x1b]0;title\x07", "?]0;title?"),
        ("\x9b2J\x7f\r\x00", "?2J???"),
    ],
)
def test_control_characters_are_replaced_and_colours_dropped(text, shown):
    assert tame(text) == shown


def report() -> Report:
    proof = Proof(id="models", title=NASTY, status=ProofStatus.FAIL, why=NASTY, evidence=(NASTY,))
    result = SmokeResult(
        url=NASTY, instance=None, model=NASTY, engine_version=NASTY, block_size=8, proofs=(proof,)
    )
    return Report(command="smoke", data=result, errors=(ErrorInfo(message=NASTY, hint=NASTY, detail=NASTY),))


def with_findings() -> Report:
    finding = Finding(id="a.b", severity=Severity.ERROR, summary=NASTY, detail=NASTY, fix=NASTY)
    return Report(command="", findings=(finding,), next_steps=(NASTY,))


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
@pytest.mark.parametrize("made", [report, with_findings])
def test_no_report_lets_them_through(monkeypatch, stream, made):
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    out, err = stream(), stream()
    show(made(), out=out, err=err)
    written = out.getvalue() + err.getvalue()
    assert "evil" in written
    assert [code for code in HARMFUL if code in written] == []


def test_our_own_styles_stay(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    out = Terminal()
    show(report(), out=out, err=io.StringIO())
    assert "\x1b[1;31mFAIL" in out.getvalue()
    assert "\x1b[2J" not in out.getvalue()


def test_no_step_of_a_progress_lets_them_through():
    err = io.StringIO()
    ProgressLine(err).show(Progress(step="smoke", text=NASTY, final=True))
    assert "evil" in err.getvalue()
    assert [code for code in HARMFUL if code in err.getvalue()] == []
