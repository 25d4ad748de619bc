"""Verdicts and reasons on terminals of any width."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from dflashctl.core.instance import Phase
from dflashctl.core.report import Report
from dflashctl.core.smoke import Proof, ProofStatus, SmokeResult
from dflashctl.core.status import InstanceStatus, StatusList, SupervisorView
from dflashctl.ui.theme import THEME
from dflashctl.ui.views import smoke, status
from dflashctl.ui.views.proofs import proof_lines

REASON = "a chat request was refused with status 502 by the gateway"
PROOFS = (
    Proof(
        id="lossless",
        title="gives the same text as without speculation",
        status=ProofStatus.FAIL,
        why=REASON,
        elapsed_s=12.5,
    ),
    Proof(id="health", title="says that it is healthy", status=ProofStatus.PASS, why="200", elapsed_s=0.1),
    Proof(id="reasoning", title="separates reasoning", status=ProofStatus.SKIPPED, why="no parser"),
)
WIDTHS = (26, 40, 60, 80, 100, 160)


def drawn(renderables, width):
    text = io.StringIO()
    Console(file=text, width=width, theme=THEME, highlight=False, markup=False).print(*renderables, sep="\n")
    return text.getvalue()


def smoke_view():
    result = SmokeResult(
        url="http://127.0.0.1:1", instance=None, model="m", engine_version=None, block_size=8, proofs=PROOFS
    )
    return smoke.render(Report(command="smoke", data=result))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("view", "marks"),
    [(smoke_view, ("FAIL", "pass", "skip")), (lambda: proof_lines(PROOFS), ("fail", "pass", "skipped"))],
    ids=["smoke", "up"],
)
def test_verdict_and_reason_are_there_at_any_width(view, marks, width):
    text = drawn(view(), width)
    assert max(map(len, text.splitlines())) <= width
    for mark in marks:
        assert any(line.startswith(mark) for line in text.splitlines()), text
    words = text.split()
    assert [word for word in (*REASON.split(), "200", "parser") if word not in words] == [], text


def test_a_reason_stands_beside_its_title_where_there_is_room():
    line = next(line for line in drawn(smoke_view(), 160).splitlines() if line.startswith("FAIL"))
    assert REASON in line
    assert line.rstrip().endswith("12.5 s")


@pytest.mark.parametrize("width", WIDTHS)
def test_instances_and_their_phases_are_there_at_any_width(width):
    listed = StatusList(
        instances=tuple(
            InstanceStatus(
                name=name,
                phase=phase,
                phase_for_s=12.0,
                supervisor=SupervisorView(alive=True, pid=1),
            )
            for name, phase in (("kimi-k3-b300", Phase.READY), ("tiny-cpu", Phase.UNHEALTHY))
        )
    )
    text = drawn(status.render(Report(command="status", data=listed)), width)
    for word in ("kimi-k3-b300", "ready", "tiny-cpu", "unhealthy", "ACCEPT", "RUNNING", "12.0 s"):
        assert word in text, text
