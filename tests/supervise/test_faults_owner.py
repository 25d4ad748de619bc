"""Faults of the supervisor, its lock and its record, by their number in the fault list."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from dflashctl.commands.down import down
from dflashctl.commands.status import status
from dflashctl.core.errors import Busy, StateError
from dflashctl.core.instance import Phase
from dflashctl.edges import processes
from dflashctl.edges.instances import FileInstances
from tests.supervise.harness import alive, command_lines, parent, wait_for
from tests.support.start_detached import start_detached


def guard_of(harness):
    return next(pid for pid, line in command_lines() if "guard.py" in line and harness.mark in line)


def test_fault_17_nothing_outlives_a_killed_supervisor(harness):
    up = harness.up()
    harness.reach("ready")
    up.kill()
    up.wait()
    harness.nothing_left(1.0)
    report = status(harness.env, "tiny")
    assert (report.exit_code, report.data.reason.code) == (3, "unclean_end")
    harness.up()
    harness.reach("ready")
    assert "unclean_end" in harness.kinds()
    harness.stop()
    assert harness.ended() == 0


@pytest.mark.parametrize("delay_s", [0.0, 0.05, 0.1, 0.15, 0.2, 0.3])
def test_fault_18_a_supervisor_killed_while_spawning_leaves_nothing(harness, delay_s):
    up = harness.up("--early-workers", "--unarmed", "--step-s", "0.1")
    wait_for(lambda: harness.phase() in ("starting", "loading"), "the start")
    time.sleep(delay_s)
    up.kill()
    up.wait()
    harness.nothing_left(1.0)


def test_fault_18_workers_that_armed_no_death_signal_are_ended_by_the_guard(harness):
    up = harness.up("--early-workers", "--unarmed", "--stuck-at", "load_target")
    wait_for(lambda: len(harness.marked()) >= 4, "the workers")
    up.kill()
    up.wait()
    harness.nothing_left(1.0)


def test_fault_18_with_the_guard_killed_first_the_next_up_sweeps(harness):
    up = harness.up("--early-workers", "--unarmed", "--stuck-at", "load_target")
    wait_for(lambda: len(harness.marked()) >= 4, "the workers")
    os.kill(up.pid, signal.SIGSTOP)
    os.kill(guard_of(harness), signal.SIGKILL)
    up.kill()
    up.wait()
    left = wait_for(lambda: [pid for pid in harness.marked() if parent(pid) != up.pid], "orphans")
    assert len(left) >= 2
    harness.up()
    harness.reach("ready")
    assert not [pid for pid in left if alive(pid)]
    assert "swept" in harness.kinds()
    harness.stop()
    assert harness.ended() == 0


def test_a_dead_guard_is_replaced(harness):
    harness.up()
    harness.reach("ready")
    first = guard_of(harness)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: "guard" in harness.kinds(), "the note")
    assert guard_of(harness) != first
    harness.started[-1].kill()
    harness.started[-1].wait()
    harness.nothing_left(1.0)


def test_fault_19_down_sweeps_what_outlived_everything(harness):
    up = harness.up("--unarmed")
    harness.reach("ready")
    os.kill(up.pid, signal.SIGSTOP)
    os.kill(guard_of(harness), signal.SIGKILL)
    up.kill()
    up.wait()
    wait_for(harness.marked, "orphans")
    report = down(harness.env, "tiny")
    assert report.exit_code == 0
    assert report.data.swept >= 2
    assert not report.data.already_stopped
    harness.nothing_left(0.1)


def test_fault_20_a_worker_that_left_for_its_own_session_is_ended_too(harness):
    harness.up("--escape")
    harness.reach("ready")
    wait_for(lambda: len(harness.record().sessions) == 2, "the second session")
    harness.stop()
    assert harness.ended() == 0
    harness.nothing_left(0.1)


def test_fault_20_also_when_the_supervisor_is_killed(harness):
    up = harness.up("--escape")
    harness.reach("ready")
    wait_for(lambda: len(harness.record().sessions) == 2, "the second session")
    up.kill()
    up.wait()
    harness.nothing_left(1.0)


@pytest.mark.parametrize("way", ["guard", "down"])
def test_a_session_that_nobody_has_written_down_yet_is_ended_too(harness, way):
    up = harness.up("--escape", pace={"tree_s": 600.0})
    harness.reach("ready")
    assert len(harness.record().sessions) == 1
    if way == "down":
        os.kill(up.pid, signal.SIGSTOP)
        os.kill(guard_of(harness), signal.SIGKILL)
    up.kill()
    up.wait()
    if way == "down":
        wait_for(harness.marked, "the worker in a session of its own")
        assert down(harness.env, "tiny").data.swept >= 1
    harness.nothing_left(1.0)


def test_a_lock_that_was_handed_over_is_no_unclean_end(harness):
    """The record that the detached supervisor finds is that of the command which started it."""
    for _ in range(2):
        with harness.env.instances.own("tiny") as owned:
            owned.enter(Phase.VERIFYING, "the plan")
            start_detached(harness.plan(), harness.env, owned=owned)
        assert harness.record().phase is Phase.READY
        assert down(harness.env, "tiny").exit_code == 0
    assert "unclean_end" not in harness.kinds()


def test_the_supervisors_own_session_is_never_the_servers(harness):
    harness.up()
    record = harness.reach("ready")
    assert [s.pid for s in record.sessions] == [record.server.pid]
    assert os.getsid(harness.started[-1].pid) not in [s.pid for s in record.sessions]
    session = os.getsid(0)  # its leader may be gone, or outside this pid namespace, as in a container
    ours = processes.identify(session) or replace(processes.identify(os.getpid()), pid=session)
    assert processes.session_members((ours,)) == ()
    harness.stop()
    harness.ended()


def test_an_instances_members_are_all_its_servers_processes_and_no_others(harness):
    up = harness.up("--escape")
    record = harness.reach("ready")
    wait_for(lambda: len(harness.record().sessions) == 2, "the second session")
    members = harness.env.instances.members("tiny")
    assert record.server.pid in members
    assert set(members) == set(harness.marked()) - {up.pid, guard_of(harness)}
    harness.stop()
    harness.ended()
    assert harness.env.instances.members("tiny") == ()
    assert harness.env.instances.members("never-started") == ()


def test_fault_21_of_two_that_start_at_once_one_wins(harness):
    for _ in range(8):
        first, second = harness.up(), harness.up()
        wait_for(lambda pair=(first, second): [p for p in pair if p.poll() is not None], "the loser")
        loser, winner = (first, second) if first.poll() is not None else (second, first)
        assert loser.returncode == 75
        record = harness.reach_by(winner)
        assert f"owned by pid {winner.pid}" in harness.stderr(loser)
        assert record.supervisor.pid == winner.pid
        harness.stop(winner)
        assert harness.ended(winner) == 0


def test_fault_21_fifty_rounds_of_the_lock_itself(tmp_path):
    instances = FileInstances(environ={"DFLASHCTL_STATE_DIR": str(tmp_path)})
    for _ in range(50):
        won, lost = [], []

        def take(won=won, lost=lost):
            try:
                won.append(instances.own("x"))
            except Busy as busy:
                lost.append(busy.message)

        threads = [threading.Thread(target=take) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (len(won), len(lost)) == (1, 2)
        assert f"pid {os.getpid()}" in lost[0]
        won[0].close()


@pytest.mark.parametrize("gone", ["lock", "folder", "state"])
def test_a_lock_that_is_removed_is_made_again(harness, gone):
    up = harness.up("--chatter-s", "0.05")
    record = harness.reach("ready")
    folder = harness.state / "v1/instances/tiny"
    if gone == "lock":
        (folder / "lock").unlink()
    else:
        (folder if gone == "folder" else harness.state).rename(harness.folder / "away")
        shutil.rmtree(harness.folder / "away", ignore_errors=True)
    wait_for(lambda: "lock_restored" in harness.kinds(), "the lock")
    assert harness.reach("ready").server.pid == record.server.pid
    assert harness.snapshot().owner_pid == up.pid
    with pytest.raises(Busy):
        harness.env.instances.own("tiny")
    wait_for(harness.log, "the log")
    assert down(harness.env, "tiny").exit_code == 0
    assert harness.ended(up) == 0
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]


def test_a_supervisor_whose_instance_was_taken_by_another_ends_in_order(harness):
    up = harness.up()
    harness.reach("ready")
    with harness.env.instances.own("other") as other:
        os.replace(other.folder / "lock", harness.state / "v1/instances/tiny/lock")
        assert harness.ended(up) == 0
        harness.nothing_left()
        assert harness.snapshot().supervised
        assert harness.phase() != "stopped"


def test_fault_22_down_and_up_at_once_end_up_or_down(harness):
    harness.up()
    harness.reach("ready")
    for _ in range(6):
        other = threading.Thread(target=lambda: down(harness.env, "tiny"))
        other.start()
        new = harness.up()
        other.join()
        wait_for(lambda new=new: new.poll() is not None or harness.phase() == "ready", "an end")
        if new.poll() is not None:
            assert new.returncode in (0, 75)
            for process in harness.started:
                if process.poll() is None:
                    process.wait(5)
            harness.nothing_left()
            harness.up()
            harness.reach("ready")
        for process in harness.started[:-1]:
            assert process.wait(10) in (0, 75)
    assert down(harness.env, "tiny").exit_code == 0
    for process in harness.started:
        assert process.wait(10) in (0, 75)


def test_fault_24_a_record_whose_pid_is_a_stranger_now_harms_nobody(harness):
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        with harness.env.instances.own("tiny") as owned:
            me = processes.identify(stranger.pid)
            wrong = replace(me, start_ticks=me.start_ticks - 1, session=stranger.pid)
            owned.record(replace(owned.current, supervisor=wrong, server=wrong, sessions=(wrong,)))
        assert status(harness.env, "tiny").exit_code == 3
        assert down(harness.env, "tiny").exit_code == 0
        harness.up()
        harness.reach("ready")
        assert alive(stranger.pid)
        harness.stop()
        harness.ended()
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("field", ["boot_id", "pid_namespace"])
def test_fault_25_a_record_from_elsewhere_is_not_acted_upon(harness, field):
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        me = processes.identify(stranger.pid)
        other = replace(me, **{field: "another" if field == "boot_id" else 1})
        with harness.env.instances.own("tiny") as owned:
            owned.record(replace(owned.current, supervisor=other, server=other, sessions=(other,)))
        assert status(harness.env, "tiny").data.supervisor.alive is False
        assert down(harness.env, "tiny").data.swept == 0
        assert alive(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait()


def test_fault_34_a_supervisor_that_stood_still_sees_no_false_hang(harness):
    harness.up("--busy", "--chatter-s", "0.05", timing={"hang_after_s": 0.8})
    record = harness.reach("ready")
    os.kill(harness.started[-1].pid, signal.SIGSTOP)
    time.sleep(2.0)
    os.kill(harness.started[-1].pid, signal.SIGCONT)
    time.sleep(0.3)
    assert harness.phase() == "ready"
    assert harness.record().server.pid == record.server.pid
    assert harness.record().restarts_used == 0
    harness.stop()
    assert harness.ended() == 0


def test_fault_34_an_exit_during_the_standstill_is_not_lost(harness):
    harness.up()
    pid = harness.reach("ready").server.pid
    os.kill(harness.started[-1].pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    os.kill(harness.started[-1].pid, signal.SIGCONT)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    harness.reach("ready")
    harness.stop()
    assert harness.ended() == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"schema_version": 1}', b"\xff\xfe", b"[" * 100_000, b"x" * 2_000_000, b'{"name": 3}'],
)
def test_fault_41_an_unreadable_record_is_set_aside(harness, content):
    folder = harness.state / "v1/instances/tiny"
    with harness.env.instances.own("tiny"):
        pass
    (folder / "instance.json").write_bytes(content)
    report = status(harness.env, "tiny")
    assert (report.exit_code, report.data.reason.code) == (3, "record_unreadable")
    with harness.env.instances.own("tiny") as owned:
        assert owned.previous is None
        assert status(harness.env, "tiny").data.supervisor.alive
    assert (folder / "instance.json.bad-1").read_bytes() == content
    assert "record_unreadable" in harness.kinds()
    (folder / "instance.json").write_bytes(content)
    with harness.env.instances.own("tiny"):
        pass
    assert (folder / "instance.json.bad-2").exists()


def test_a_newer_record_with_more_keys_is_read(harness):
    with harness.env.instances.own("tiny") as owned:
        owned.record(owned.current)
    path = harness.state / "v1/instances/tiny/instance.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 9, "new": {"deep": 1}}))
    assert harness.record().schema_version == 9


def test_fault_38_a_state_folder_that_cannot_be_used_is_permanent(harness, tmp_path):
    taken = tmp_path / "file"
    taken.write_text("")
    code = harness.ended(harness.up(environ={"DFLASHCTL_STATE_DIR": str(taken / "below")}))
    assert code == 78
    assert f"state folder '{taken / 'below'}'" in harness.stderr()


def test_fault_39_a_folder_open_to_others_is_refused(tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(StateError, match="writable by others"):
        FileInstances(environ={"DFLASHCTL_STATE_DIR": str(tmp_path / "state")}).own("x")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_fault_39_a_foreign_folder_is_refused(tmp_path):
    (tmp_path / "state").mkdir(mode=0o700)
    os.chown(tmp_path / "state", 12345, 12345)
    with pytest.raises(StateError, match="belongs to user 12345"):
        FileInstances(environ={"DFLASHCTL_STATE_DIR": str(tmp_path / "state")}).own("x")


def test_fault_40_a_linked_root_is_allowed_a_linked_file_never(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    instances = FileInstances(environ={"DFLASHCTL_STATE_DIR": str(tmp_path / "link")})
    with instances.own("x") as owned:
        folder = owned.folder
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(victim)
    with pytest.raises(StateError, match="is a link"):
        instances.own("x")
    (folder / "lock").unlink()
    (folder / "instance.json").symlink_to(victim)
    with instances.own("x") as owned:
        owned.record(owned.current)
    (folder / "logs").rmdir()
    (folder / "logs").symlink_to(tmp_path / "real")
    with pytest.raises(StateError, match="is a link"):
        instances.own("x")
    assert victim.read_text() == "precious"


def test_fault_42_a_write_that_breaks_off_anywhere_leaves_the_old_or_the_new(tmp_path):
    """A writer killed at random moments; every reader in between finds a whole record."""
    program = (
        "import sys\nfrom dataclasses import replace\nfrom dflashctl.edges.instances import FileInstances\n"
        "o = FileInstances(environ={'DFLASHCTL_STATE_DIR': sys.argv[1]}).own('x')\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    o.record(replace(o.current, facts=tuple((str(n), 'v' * 50) for _ in range(50))))\n"
    )
    instances = FileInstances(environ={"DFLASHCTL_STATE_DIR": str(tmp_path)})
    seen = set()
    for round_ in range(8):
        writer = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
        wait_for(lambda: instances.read("x").supervised and instances.read("x").record, "a record")
        for _ in range(20 + round_):
            snapshot = instances.read("x")
            assert snapshot.problem is None
            seen.add(len({key for key, _ in snapshot.record.facts}))
        writer.kill()
        writer.wait()
        assert instances.read("x").problem is None
    assert seen <= {0, 1}
    with instances.own("x") as owned:
        assert not [name for name in os.listdir(owned.folder) if name.endswith(".tmp")]


def test_a_dead_supervisors_ready_is_not_believed_while_a_new_owner_has_not_signed(harness):
    gone = subprocess.Popen(["sleep", "60"])
    was = processes.identify(gone.pid)
    gone.kill()
    gone.wait()
    with harness.env.instances.own("tiny") as owned:
        owned.record(replace(owned.current, phase=Phase.READY, ready=True, supervisor=was))
        for unsigned in (b"", f"{was.pid}\n".encode()):
            (owned.folder / "lock").write_bytes(unsigned)
            snapshot = harness.env.instances.read("tiny")
            assert snapshot.supervised
            assert (snapshot.record.phase, snapshot.record.ready) == (Phase.PREFLIGHT, False)
