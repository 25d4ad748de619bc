"""Polls that went well say nothing of a server's end; everything else may."""

from __future__ import annotations

import pytest

from dflashctl.core.diagnose import EVIDENCE_LINES, Signature, diagnose
from dflashctl.core.routine_lines import telling
from dflashctl.core.verdict import EndFacts, judge

POLL = '[2026-11-30 17:26:24] INFO:     127.0.0.1:52388 - "GET {} HTTP/1.{}" {}'
ROUTINE = [
    POLL.format(path, minor, "200 OK")
    for minor in (0, 1)
    for path in (
        "/metrics",
        "/health",
        "/health_generate",
        "/v1/models",
        "/server_info",
        "/get_model_info?x=1",
        "/ready",
    )
]
KEPT = [
    POLL.format("/health", 1, "503 Service Unavailable"),
    POLL.format("/metrics", 1, "500 Internal Server Error"),
    POLL.format("/v1/models/other", 1, "200 OK"),
    'INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
    "[2026-11-30 17:26:24] Decode batch, #running-req: 1, gen throughput (token/s): 12.0",
    "GET /metrics was asked for",
]


@pytest.mark.parametrize("line", ROUTINE)
def test_a_poll_that_went_well_is_left_out(line):
    assert telling(["before", line, "after"], 5) == ("before", "after")


@pytest.mark.parametrize("line", KEPT)
def test_all_else_is_kept(line):
    assert telling([*ROUTINE, line, *ROUTINE], 5) == (line,)


def test_the_last_ones_count():
    assert telling(["1", "2", ROUTINE[0], "3"], 2) == ("2", "3")
    assert telling([], 2) == ()


def test_the_end_of_a_server_shows_what_it_said_between_hundreds_of_polls():
    said = [f"step {number}" for number in range(EVIDENCE_LINES + 5)]
    lines = [line for step in said for line in (step, *ROUTINE)]
    facts = EndFacts(returncode=-9, oom_kills=0, step=None, was_ready=True, lines=lines)
    assert judge(facts, None).last_exit.evidence == tuple(said[-EVIDENCE_LINES:])


@pytest.mark.parametrize(
    "signatures", [[Signature(id="x", pattern="ValueError: no", cause="c", fix="f", permanent=True)], []]
)
def test_the_lines_above_a_cause_are_those_that_tell(signatures):
    lines = ["one", *ROUTINE, "Traceback (most recent call last):", *ROUTINE, "ValueError: no", *ROUTINE]
    found = diagnose(lines, signatures)
    assert found.evidence == ("one", "Traceback (most recent call last):", "ValueError: no")
