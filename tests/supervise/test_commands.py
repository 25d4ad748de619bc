"""status, logs, down and the detached start, on real supervisors."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from dflashctl.commands.down import down
from dflashctl.commands.logs import logs
from dflashctl.commands.status import status
from dflashctl.core.errors import NotRunning, StateError, UsageProblem
from dflashctl.core.instance import Phase
from dflashctl.core.plan_file import dump_plan
from dflashctl.core.report import envelope
from dflashctl.env import Env
from tests.supervise.harness import free_port, wait_for
from tests.support.start_detached import start_detached


def test_status_tells_what_runs_with_live_figures(harness):
    harness.up()
    harness.reach("ready")
    report = status(harness.env, "tiny")
    data = report.data
    assert report.exit_code == 0
    assert (data.phase, data.ready, data.supervisor.alive) == (Phase.READY, True, True)
    assert data.live.accept_length == 5.25
    assert data.live.kv_use == 0.25
    assert data.server.url == f"http://127.0.0.1:{harness.port}"
    assert data.drift is None
    assert data.drift is None  # nothing was written down about what it was started from
    assert json.dumps(envelope(report))
    harness.stop()
    harness.ended()
    after = status(harness.env, "tiny")
    assert (after.exit_code, after.data.phase, after.data.live) == (3, Phase.STOPPED, None)


def test_status_of_nothing_is_exit_3(harness):
    assert status(harness.env).exit_code == 3
    assert status(harness.env, "never-seen").exit_code == 3


def test_fault_23_down_stops_and_down_again_is_already_stopped(harness):
    up = harness.up()
    harness.reach("ready")
    report = down(harness.env)
    assert (report.exit_code, report.data.already_stopped) == (0, False)
    assert harness.ended(up, 1) == 0
    harness.nothing_left(0.5)
    again = down(harness.env, "tiny")
    assert (again.exit_code, again.data.already_stopped) == (0, True)
    assert down(harness.env, "never-seen").exit_code == 0


def test_down_without_a_name_needs_one_when_several_run(harness):
    harness.up()
    harness.reach("ready")
    second = harness.plan(name="other")
    port = harness.port
    try:
        harness.port = free_port()
        second = harness.plan(name="other")
        harness.start(second)
        harness.reach("ready", "other")
        with pytest.raises(UsageProblem, match="other, tiny"):
            down(harness.env)
        assert down(harness.env, "other").exit_code == 0
        assert harness.phase("tiny") == "ready"
    finally:
        harness.port = port
    assert down(harness.env).exit_code == 0
    for process in harness.started:
        harness.ended(process)


def test_down_kills_what_ignores_it(harness):
    up = harness.up("--ignore-term", pace={"kill_after_s": 0.2})
    harness.reach("ready")
    assert down(harness.env).exit_code == 0
    assert harness.ended(up) == 0
    assert "drain_killed" in harness.record().reason.code


HANDS_OVER = """
import signal, sys
from contextlib import suppress
from pathlib import Path
from dflashctl.core.errors import StateError
from dflashctl.core.plan_file import load_plan
from dflashctl.env import Env
from tests.support.start_detached import start_detached
env, plan = Env(), load_plan(Path(sys.argv[1]).read_text())
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
owned = env.instances.own(plan.name)
signal.sigwait([signal.SIGTERM])
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
with suppress(StateError):  # it may not have begun yet
    start_detached(plan, env, owned=owned, wait=False)
"""


def test_down_follows_a_lock_that_is_handed_over_while_it_asks(harness, tmp_path):
    """The command that starts in the background gets the TERM, but its supervisor owns the instance by then."""
    file = tmp_path / "plan.json"
    file.write_text(dump_plan(harness.plan()))
    command = subprocess.Popen([sys.executable, "-c", HANDS_OVER, str(file)], env=harness.environ)
    wait_for(lambda: harness.snapshot().supervised, "the first owner")
    assert down(harness.env, "tiny").exit_code == 0
    assert command.wait(10) == 0
    assert not harness.snapshot().supervised
    harness.nothing_left()


def test_a_second_down_joins_the_first_and_cuts_no_request_short(harness):
    up = harness.up("--ignore-term", timing={"drain_timeout_s": 2.0})
    harness.reach("ready")
    took = []
    first = threading.Thread(target=lambda: took.append(down(harness.env, "tiny").data.took_s))
    first.start()
    harness.reach("draining")
    harness.let_a_stop_be_over()
    assert down(harness.env, "tiny").exit_code == 0
    first.join()
    assert took[0] >= 2.0
    assert harness.ended(up) == 0


@pytest.mark.parametrize("damage", ["garbage", "folder"])
def test_down_stops_a_supervisor_whose_record_is_damaged(harness, damage):
    up = harness.up(pace={"record_s": 600.0})
    harness.reach("ready")
    path = harness.state / "v1/instances/tiny/instance.json"
    path.unlink()
    if damage == "folder":
        path.mkdir()
    else:
        path.write_text("{garbage")
    reason = status(harness.env, "tiny").data.reason
    assert reason.code == "record_unreadable"
    assert reason.text.startswith(f"the record '{path}' is damaged")
    report = down(harness.env, "tiny")
    assert (report.exit_code, report.data.forced) == (0, False)
    assert harness.ended(up) == 0
    harness.nothing_left()


def test_down_of_a_name_that_was_never_started_leaves_nothing_behind(harness):
    assert down(harness.env, "typo").data.already_stopped
    assert harness.env.instances.names() == ()


def test_what_cannot_be_read_keeps_nobody_from_the_others(harness):
    harness.up()
    harness.reach("ready")
    folder = harness.state / "v1/instances"
    (folder / "Odd Name").mkdir()
    with harness.env.instances.own("open"):
        pass
    (folder / "open").chmod(0o770)
    report = status(harness.env)
    assert (report.exit_code, report.data.name) == (0, "tiny")
    assert [f.id for f in report.findings] == ["skipped", "skipped"]
    assert str(folder / "Odd Name") in report.findings[0].summary
    assert str(folder / "open") in report.findings[1].summary
    assert logs(harness.env).exit_code == 0
    with pytest.raises(StateError):
        status(harness.env, "open")
    assert down(harness.env).data.name == "tiny"
    assert harness.ended() == 0


@pytest.mark.parametrize("part", ["", "v1", "v1/instances"])
def test_a_state_folder_that_cannot_be_read_is_no_empty_one(harness, part):
    folder = harness.state / part
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.write_text("in the way")
    for command in (status, down, logs):
        for name in (None, "tiny"):
            with pytest.raises(StateError, match=str(folder)):
                command(harness.env, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_state_folder_of_somebody_else_is_no_empty_one(tmp_path):
    program = (
        "import os, sys\nfrom dflashctl.env import Env\nfrom dflashctl.core.errors import StateError\n"
        "instances = Env(environ={'DFLASHCTL_STATE_DIR': sys.argv[1]}).instances\nos.setuid(65534)\n"
        "try:\n    instances.names()\n"
        "except StateError as error:\n    print(error.message)\n"
    )
    (tmp_path / "state").mkdir(mode=0o700)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "state")], capture_output=True, text=True, check=True
    )
    assert str(tmp_path / "state") in done.stdout


def test_logs_tail_phase_and_follow(harness):
    harness.up("--chatter-s", "0.1")
    harness.reach("ready")
    tail = logs(harness.env, "tiny", lines=3)
    assert (tail.exit_code, len(tail.data.lines)) == (0, 3)
    loading = logs(harness.env, "tiny", phase="loading").data.lines
    assert any("Load weight begin" in line.text for line in loading)
    assert all(line.phase.startswith("loading") for line in loading)
    targets = logs(harness.env, "tiny", phase="load_draft").data.lines
    assert {line.phase for line in targets} == {"loading.load_draft"}
    followed = logs(harness.env, "tiny", follow=True, lines=1)
    assert len(next(followed).data.lines) == 1
    more = next(followed)
    assert more.data.more
    assert "Decode batch" in more.data.lines[0].text
    harness.stop()
    rest = list(followed)
    assert rest[-1].exit_code == 3
    # The server chatters until it is gone, so its goodbye need not be the very last line.
    assert any("Gracefully exiting" in line.text for report in rest for line in report.data.lines)
    harness.ended()
    with pytest.raises(UsageProblem):
        logs(harness.env, "tiny", phase="loadnig")
    with pytest.raises(NotRunning):
        logs(harness.env, "never-seen")


class OwnedAfterwards:
    """The real instances, of which one is owned again once it has been seen `looks` times without an owner, as by `down`."""

    def __init__(self, instances, looks):
        self._instances = instances
        self._looks = looks
        self.owned = None

    def __getattr__(self, name):
        return getattr(self._instances, name)

    def read(self, name):
        found = self._instances.read(name)
        self._looks -= not found.supervised
        if self.owned is None and not self._looks:
            self.owned = self._instances.own(name, brief=True)
        return found


@pytest.mark.parametrize(("follow", "looks"), [(False, 1), (True, 2)])
def test_logs_of_an_instance_that_has_ended_say_so_whoever_owns_it_next(harness, follow, looks):
    harness.up()
    harness.reach("ready")
    harness.stop()
    harness.ended()
    instances = OwnedAfterwards(harness.env.instances, looks)
    env = Env(environ=harness.environ, instances=instances)
    try:
        found = logs(env, "tiny", follow=follow)
        last = list(found)[-1] if follow else found
    finally:
        instances.owned.close()
    assert last.exit_code == 3


def test_a_detached_start_returns_when_ready_and_leaves_the_supervisor(harness):
    seen = []
    harness.env.notify = seen.append
    result = start_detached(harness.plan(), harness.env)
    assert (result.exit_code, result.left_running, result.record.phase) == (0, True, Phase.READY)
    assert {"loading", "ready"} & {event.step for event in seen}
    supervisor = harness.record().supervisor
    assert supervisor.session == supervisor.pid
    assert os.getpid() != supervisor.pid
    assert down(harness.env).exit_code == 0
    harness.nothing_left()


def test_a_detached_start_that_fails_says_why(harness):
    plan = harness.plan(
        "--die-at",
        "load_target",
        "--die-text",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    )
    result = start_detached(plan, harness.env)
    assert (result.exit_code, result.left_running) == (78, False)
    assert "CUDA" in result.findings[0].summary or "GPU" in result.findings[0].summary
    harness.nothing_left()


def test_what_keeps_a_detached_supervisor_from_beginning_is_told_with_its_own_code(harness):
    result = start_detached(
        harness.plan(), Env(environ={**harness.environ, "DFLASHCTL_API_KEY_FILE": "/nonexistent"})
    )
    assert (result.exit_code, result.left_running) == (78, False)
    assert "API key file '/nonexistent' cannot be read" in result.findings[0].summary
    assert harness.record().exit_code == 78


def test_a_detached_supervisor_that_is_killed_while_it_loads_is_told(harness):
    results = []
    plan = harness.plan("--stuck-at", "load_target")
    waits = threading.Thread(target=lambda: results.append(start_detached(plan, harness.env)))
    waits.start()
    wait_for(lambda: (r := harness.record()) and r.phase is Phase.LOADING and r.detached, "the start")
    pid = harness.record().supervisor.pid
    os.kill(pid, signal.SIGKILL)
    waits.join()
    assert results[0].exit_code == 4
    assert results[0].findings[0].id == "unclean_end"
    assert f"pid {pid}" in results[0].findings[0].summary
    harness.nothing_left()


def test_a_linked_supervisor_log_is_refused(harness, tmp_path):
    with harness.env.instances.own("tiny") as owned:
        owned.log_path.with_name("supervisor.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StateError, match=r"supervisor\.log"):
        start_detached(harness.plan(), harness.env)
    assert not (tmp_path / "elsewhere").exists()


def test_drift_compares_whole_plans(harness):
    plan = harness.plan()
    assert plan.fingerprint != replace(harness.plan("--busy")).fingerprint


def test_a_runtime_folder_that_cannot_be_made_is_told_with_its_fix(harness):
    environ = {**harness.environ, "DFLASHCTL_RUNTIME_DIR": "/proc/nope"}
    result = start_detached(harness.plan(), Env(environ=environ))
    assert (result.exit_code, result.left_running) == (78, False)
    (finding,) = result.findings
    assert finding.summary.startswith("no runtime folder (for short-lived files) can be made: '/proc/nope'")
    assert "Error:" not in finding.summary
    assert "DFLASHCTL_RUNTIME_DIR" in finding.fix
    assert harness.record().exit_code == 78
