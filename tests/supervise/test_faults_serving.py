"""Faults of a serving server, by their number in the fault list."""

import io
import os
import resource
import shutil
import signal
import threading
import time

import pytest

from dflashctl.commands.status import status
from dflashctl.ui.text import show
from tests.supervise.harness import quiet, wait_for


def test_fault_01_a_killed_server_is_classified_and_started_again(harness):
    harness.up()
    first = harness.reach("ready").server.pid
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    assert harness.record().last_exit.kind == "killed"
    assert harness.record().last_exit.signal == 9
    second = harness.reach("ready").server.pid
    assert first != second
    harness.stop()
    assert harness.ended() == 0
    harness.nothing_left()


def test_fault_02_a_killed_scheduler_is_named_as_the_cause(harness):
    harness.up(timing={"restarts": 0})
    harness.reach("ready")
    os.kill(harness.workers()[0], signal.SIGKILL)
    assert harness.ended() == 4
    assert harness.record().last_exit.kind == "scheduler_died"
    assert "scheduler_" in harness.record().reason.text
    assert "memory" not in harness.record().reason.text
    harness.nothing_left()


def test_fault_03_a_zombie_service_is_noticed_by_its_missing_tokens(harness):
    harness.up("--zombie", "--mute-after", "1", timing={"restarts": 0})
    harness.reach("ready")
    os.kill(harness.workers()[0], signal.SIGKILL)
    assert harness.ended() == 4
    assert harness.record().reason.code == "hang"
    assert "unhealthy" in harness.phases()
    harness.nothing_left()


def test_a_frozen_idle_server_is_doubted_in_status_and_restarted(harness):
    harness.up(timing={"restarts": 1, "hang_after_s": 1.5})
    frozen = harness.reach("ready").server.pid
    os.kill(frozen, signal.SIGSTOP)
    wait_for(lambda: harness.record().healthy is False and harness.phase() == "ready", "the doubt")
    out = io.StringIO()
    show(status(harness.env, "tiny"), out=out, err=io.StringIO())
    assert "in doubt" in out.getvalue()
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    assert "test completions got no answer" in harness.record().reason.text
    assert harness.reach("ready").server.pid != frozen
    harness.stop()
    assert harness.ended() == 0
    harness.nothing_left()


def test_fault_06_dying_right_after_ready_spends_the_budget(harness):
    harness.up("--die-at", "ready", "--die-text", "gone", "--die-code", "3")
    assert harness.ended() == 4
    assert harness.phases().count("ready") == 3
    assert harness.phases().count("backoff") == 2
    assert harness.record().last_exit.status == 3
    harness.nothing_left()


def test_fault_07_a_stable_period_fills_the_budget_again(harness):
    harness.up(timing={"stable_after_s": 0.3, "restarts": 1})
    for _ in range(3):
        pid = harness.reach("ready").server.pid
        wait_for(lambda: harness.record().restarts_used == 0, "a full budget")
        os.kill(pid, signal.SIGKILL)
        wait_for(
            lambda pid=pid: harness.record().server and harness.record().server.pid != pid, "another server"
        )
    harness.reach("ready")
    harness.stop()
    assert harness.ended() == 0


def test_fault_10_answers_without_tokens_are_a_hang(harness):
    harness.up("--mute-after", "1", "--busy", timing={"restarts": 1})
    harness.reach("ready")
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    assert "unhealthy" in harness.phases()
    assert "requests are in work, but no token came" in harness.record().reason.text
    harness.stop()
    assert harness.ended() == 0


def test_fault_11_a_failing_health_page_alone_restarts_nothing(harness):
    harness.up("--busy", "--moving", "--mute-after", "1")
    harness.reach("ready")
    end = time.monotonic() + 2.5
    while time.monotonic() < end:
        assert harness.phase() == "ready"
        time.sleep(0.05)
    assert harness.record().restarts_used == 0
    assert harness.ask("/fake")["completions"] == 1
    harness.stop()
    assert harness.ended() == 0


def test_fault_12_a_hanging_health_page_is_asked_once_at_a_time(harness):
    harness.up(
        "--health-hangs", pace={"probe_timeout_s": 0.2}, timing={"progress_timeout_s": 2.0, "restarts": 0}
    )
    wait_for(lambda: quiet(lambda: harness.ask("/fake")["most_probes"]), "a probe")
    harness.ended()
    assert harness.record().reason.code == "no_progress"


def test_a_busy_server_whose_log_shows_batches_is_alive(harness):
    harness.up("--busy", "--mute-after", "1", "--chatter-s", "0.1")
    harness.reach("ready")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        assert harness.phase() == "ready"
        time.sleep(0.05)
    harness.stop()
    assert harness.ended() == 0


def test_fault_14_a_server_that_ignores_term_is_killed_in_time(harness):
    harness.up("--ignore-term")
    harness.reach("ready")
    began = time.monotonic()
    harness.stop()
    assert harness.ended() == 0
    took = time.monotonic() - began
    assert 0.8 <= took < 0.8 + 1.5
    assert harness.record().reason.code == "drain_killed"
    harness.nothing_left()


def endless(harness):
    body = {"text": "x", "sampling_params": {"max_new_tokens": 10**6}}
    thread = threading.Thread(target=lambda: quiet(lambda: harness.ask("/generate", body, timeout=30)))
    thread.start()
    return thread


def test_fault_15_an_endless_request_is_aborted_when_the_drain_ends(harness):
    harness.up(pace={"kill_after_s": 5.0})
    harness.reach("ready")
    before = harness.ask("/fake")["completions"]
    thread = endless(harness)
    wait_for(lambda: harness.ask("/fake")["completions"] > before, "the request")
    began = time.monotonic()
    harness.stop()
    assert harness.ended() == 0
    thread.join()
    assert time.monotonic() - began < 5
    assert harness.record().reason.code == "drain_cut"
    assert "Gracefully exiting" in harness.log()


def test_fault_15_an_endless_request_that_cannot_be_aborted_is_cut(harness):
    harness.up("--ignore-abort")
    harness.reach("ready")
    before = harness.ask("/fake")["completions"]
    thread = endless(harness)
    wait_for(lambda: harness.ask("/fake")["completions"] > before, "the request")
    harness.stop()
    assert harness.ended() == 0
    thread.join()
    assert any("drain cut" in e.text for e in harness.events())
    assert harness.record().reason.code == "drain_killed"
    harness.nothing_left()


@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_two_signals_of_one_stop_are_one(harness, second):
    harness.up("--ignore-term", timing={"drain_timeout_s": 0.8})
    harness.reach("ready")
    harness.stop(number=signal.SIGINT)
    harness.stop(number=second)
    assert harness.ended() == 0
    assert any("drain cut" in event.text for event in harness.events())
    harness.nothing_left()


def test_a_second_signal_kills_at_once(harness):
    harness.up("--ignore-term", timing={"drain_timeout_s": 60.0})
    harness.reach("ready")
    harness.stop(number=signal.SIGINT)
    wait_for(lambda: harness.phase() == "draining", "draining")
    harness.let_a_stop_be_over()
    harness.stop(number=signal.SIGINT)
    assert harness.ended(limit_s=3) == 0
    harness.nothing_left()


def test_a_lost_runtime_folder_is_made_again_for_the_restart(harness):
    harness.up()
    pid = harness.reach("ready").server.pid
    shutil.rmtree(harness.runtime)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    harness.reach("ready")
    (folder,) = harness.runtime.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    harness.stop()
    assert harness.ended() == 0


@pytest.mark.parametrize("want", ["folder", "descriptors"])
def test_a_restart_that_lacks_something_for_the_moment_is_tried_again(harness, want):
    up = harness.up(timing={"restarts": 4}, pace={"backoff_s": (0.3,)})
    pid = harness.reach("ready").server.pid
    limits = resource.prlimit(up.pid, resource.RLIMIT_NOFILE)
    if want == "folder":
        shutil.rmtree(harness.runtime)
        harness.runtime.write_text("in the way")
    else:
        opened = max(int(name) for name in os.listdir(f"/proc/{up.pid}/fd"))
        resource.prlimit(up.pid, resource.RLIMIT_NOFILE, (opened + 2, limits[1]))
    os.kill(pid, signal.SIGKILL)
    wait_for(
        lambda: (r := harness.record()).restarts_used >= 2 and r.reason.code == "cannot_start",
        "a failed start",
    )
    if want == "folder":
        harness.runtime.unlink()
    resource.prlimit(up.pid, resource.RLIMIT_NOFILE, limits)
    harness.reach("ready")
    harness.stop()
    assert harness.ended() == 0


def test_stacks_that_cannot_be_written_are_noted_and_the_hang_is_ended_all_the_same(harness):
    harness.up("--zombie", "--mute-after", "1", timing={"restarts": 1})
    harness.reach("ready")
    (harness.state / "v1/instances/tiny/stacks.txt").mkdir()
    os.kill(harness.workers()[0], signal.SIGKILL)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    assert any(e.kind == "stacks" and e.text.startswith("lost") for e in harness.events())
    harness.stop()
    assert harness.ended() == 0
