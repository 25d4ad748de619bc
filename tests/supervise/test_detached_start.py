"""A start in the background that somebody else takes over while it is looked at."""

from __future__ import annotations

import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from dflashctl.core.errors import ExitCode
from dflashctl.core.instance import Phase
from dflashctl.supervise import result_of
from dflashctl.supervise.detached_start import DetachedStart
from tests.supervise.harness import wait_for

SUPERVISOR = """
import os, signal, sys
from dataclasses import replace
from dflashctl.core.instance import Phase, Reason
from dflashctl.env import Env
with Env().instances.own("tiny") as owned:
    owned.enter(Phase.LOADING, "loading")
    sys.stdin.readline()
    how = sys.argv[1]
    if how == "stopped":
        owned.record(replace(owned.current, phase=Phase.STOPPED, exit_code=0))
    if how == "failed":
        reason = Reason(code="out_of_memory", text="no memory")
        owned.record(replace(owned.current, phase=Phase.FAILED, reason=reason, exit_code=78))
    if how in ("killed", "asked"):
        os.kill(os.getpid(), signal.SIGKILL if how == "killed" else signal.SIGTERM)
sys.exit(78 if how == "failed" else 0)
"""


def started(harness, how):
    """A supervisor of that end, and what watches it; it ends once `go` is called."""
    process = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, how], env=harness.environ, stdin=subprocess.PIPE
    )
    start = DetachedStart(harness.env, harness.plan())
    start._process = process
    start.log = harness.folder / "server.log"
    watch = threading.Thread(target=start.wait)
    seen = []
    harness.env.notify = seen.append
    watch.start()
    wait_for(lambda: seen, "the first look")

    def go():
        process.stdin.close()
        process.wait()

    return start, watch, go


@pytest.fixture(params=["nobody", "down for a moment", "down for long", "down which wrote", "another up"])
def taken(request, harness):
    """Who has the instance when the start's outcome is looked at, taken in the moment its supervisor is gone."""
    held = []

    def take():
        if request.param == "nobody":
            return
        owned = harness.env.instances.own("tiny", brief=request.param.startswith("down"))
        held.append(owned)
        if request.param == "down which wrote":
            owned.record(replace(owned.previous, phase=Phase.STOPPED, sessions=()))
        if request.param == "another up":
            owned.enter(Phase.FETCHING, "fetching")
        if request.param == "down for a moment":
            threading.Timer(0.3, owned.close).start()

    yield take
    for owned in held:
        owned.close()


@pytest.mark.parametrize(("how", "status"), [("stopped", 0), ("failed", 78), ("killed", -9)])
def test_a_start_that_is_over_is_never_told_as_going_on(harness, taken, how, status):
    start, watch, go = started(harness, how)
    go()
    taken()
    watch.join()
    snapshot, ended = start.outcome()
    assert ended == status
    assert snapshot.record.supervisor.pid == start._process.pid
    assert not snapshot.record.ready
    if how == "stopped":
        assert snapshot.record.phase is Phase.STOPPED


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("stopped", ExitCode.OK),
        ("asked", ExitCode.OK),  # a TERM that came before it could listen for signals
        ("failed", ExitCode.PERMANENT),
        ("killed", ExitCode.GAVE_UP),
    ],
)
def test_how_a_start_ended_is_told_by_its_own_supervisor(harness, how, code):
    start, watch, go = started(harness, how)
    go()
    watch.join()
    result = result_of(start)
    assert (result.exit_code, result.left_running) == (code, False)
    assert bool(result.findings) is (code is not ExitCode.OK)


def test_a_start_that_goes_on_has_no_exit_status(harness):
    start, watch, go = started(harness, "stopped")
    try:
        for _ in range(2):
            snapshot, ended = start.outcome()
            assert (ended, snapshot.supervised, snapshot.record.phase) == (None, True, Phase.LOADING)
    finally:
        go()
        watch.join()
