"""Small facilities of the system that the supervisor leans on."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace

import pytest

from dflashctl.core.errors import Permanent, StateError
from dflashctl.core.instance import Phase, Reason
from dflashctl.core.server_state import Policy, State
from dflashctl.edges import guard, processes, sockets
from dflashctl.edges.log_tail import Follower, tail
from dflashctl.edges.memory_limits import oom_kills
from dflashctl.edges.notify_systemd import SystemdNotify
from dflashctl.edges.places import fresh_runtime_folder
from dflashctl.edges.reaper import Reaper
from dflashctl.edges.screen import Screen
from dflashctl.edges.secret_file import api_key, write_server_config
from dflashctl.supervise.notifier import Notifier
from tests.supervise.harness import wait_for


@pytest.fixture
def systemd(tmp_path):
    """A socket that hears what systemd would."""
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.setblocking(False)  # noqa: FBT003 - no keyword in socket

        def heard():
            words = []
            try:
                while True:
                    words.append(listener.recv(4096).decode())
            except BlockingIOError:
                return words

        yield {"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "3000000"}, heard


def test_systemd_hears_the_life_of_a_server(systemd):
    environ, heard = systemd
    notifier = Notifier(SystemdNotify(environ))
    policy = Policy(progress_timeout_s=600, drain_timeout_s=60, kill_after_s=20)
    notifier.entered(State(phase=Phase.LOADING))
    notifier.tick(State(phase=Phase.LOADING), 0.0, policy)
    assert heard() == ["STATUS=loading", "WATCHDOG=1", "EXTEND_TIMEOUT_USEC=630000000"]
    notifier.tick(State(phase=Phase.LOADING), 0.5, policy)
    assert heard() == []
    notifier.tick(State(phase=Phase.LOADING), 1.1, policy)
    assert heard() == ["WATCHDOG=1"]
    notifier.entered(State(phase=Phase.READY))
    assert heard() == ["STATUS=ready", "READY=1"]
    notifier.entered(State(phase=Phase.DRAINING, reason=Reason(code="stop", text="two\nlines")))
    notifier.tick(State(phase=Phase.DRAINING), 1.2, policy)
    assert heard() == ["STATUS=two lines", "STOPPING=1", "EXTEND_TIMEOUT_USEC=110000000"]


def test_without_systemd_nothing_is_said_and_nothing_fails():
    assert SystemdNotify({}).watchdog_s is None
    SystemdNotify({}).ready()
    SystemdNotify({"NOTIFY_SOCKET": "/no/such/socket"}).ready()


@pytest.mark.parametrize(
    ("membership", "path", "text", "count"),
    [
        ("0::/a/b\n", "a/b/memory.events", "low 0\noom 3\noom_kill 2\n", 2),
        ("0::/elsewhere\n", "memory.events", "oom_kill 5\n", 5),
        (
            "4:cpu,memory:/x\n0::/\n",
            "memory/x/memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
            1,
        ),
        ("4:memory:/outside\n", "memory/memory.oom_control", "oom_kill 7\n", 7),
        ("0::/a\n", "a/other", "oom_kill 9\n", None),
    ],
)
def test_the_kernels_counter_is_found_in_both_versions(tmp_path, membership, path, text, count):
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert oom_kills(root=tmp_path, membership=membership) == count


@pytest.mark.parametrize(
    ("bound", "host", "clash"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "0.0.0.0", True),
        ("127.0.0.1", "127.0.0.2", False),
        ("0.0.0.0", "127.0.0.1", True),
        ("127.0.0.1", "localhost", True),
    ],
)
def test_who_listens_where(bound, host, clash):
    with socket.create_server((bound, 0)) as listener:
        port = listener.getsockname()[1]
        assert bool(sockets.listening_inodes(port, host)) is clash
        assert sockets.can_bind(host, port) is not clash
        if clash:
            (found,) = sockets.listeners(port, host)
            assert found.pid == os.getpid()
            assert found.describe().startswith(f"pid {os.getpid()} (")
    assert sockets.listeners(port) == ()
    assert sockets.can_bind(host, port)


def test_a_signal_reaches_the_process_that_was_meant_and_no_other():
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        me = processes.identify(child.pid)
        assert processes.is_alive(me)
        for stranger in (replace(me, start_ticks=0), replace(me, boot_id="x"), replace(me, pid_namespace=1)):
            assert not processes.send(stranger, signal.SIGKILL)
            assert not processes.is_alive(stranger)
        assert child.poll() is None
        assert processes.send(me, signal.SIGTERM)
        assert child.wait(5) == -signal.SIGTERM
    finally:
        child.kill()
        child.wait()


@pytest.mark.parametrize("name", ["plain", "with space", "(odd) name)"])
def test_odd_names_do_not_confuse_the_process_table(tmp_path, name):
    program = tmp_path / name
    program.symlink_to("/bin/sleep")
    child = subprocess.Popen([str(program), "60"])
    try:
        stat = wait_for(lambda: (s := guard.read_stat(child.pid)) and s.comm == name and s, "the name")
        assert (stat.parent, stat.session) == (os.getpid(), os.getsid(0))
    finally:
        child.kill()
        child.wait()


def test_the_guard_kills_what_it_was_told_unless_it_hears_goodbye():
    for goodbye in (True, False):
        victim = subprocess.Popen(["sleep", "60"], start_new_session=True)
        ticks = guard.read_stat(victim.pid).ticks
        watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__], stdin=subprocess.PIPE, text=True
        )
        watcher.communicate(f"watch {victim.pid} {ticks}\n" + ("bye\n" if goodbye else ""), timeout=10)
        assert watcher.returncode == 0
        assert (victim.poll() is None) is goodbye
        victim.kill()
        victim.wait()


def test_the_guard_spares_a_session_whose_number_was_given_out_again():
    victim = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", guard.__file__], stdin=subprocess.PIPE, text=True
        )
        watcher.communicate(f"watch {victim.pid} 1\nwatch {os.getsid(0)} 1\n", timeout=10)
        assert victim.poll() is None
    finally:
        victim.kill()
        victim.wait()


LEAVE = """
import os, subprocess, sys
program = ["sleep", "60"]
if sys.argv[1] == "setsid":
    program = ["setsid", *program]
stat = open("/proc/self/stat").read().rpartition(")")[2].split()
mark = {"DFLASHCTL_SERVER": f"{os.getpid()}:{stat[19]}"} if sys.argv[2] == "ours" else {}
left = subprocess.Popen(program, stdout=subprocess.DEVNULL, env={**os.environ, **mark})
print(os.getpid(), stat[19], left.pid, flush=True)
"""


@pytest.mark.parametrize("way", ["stays", "setsid"])
@pytest.mark.parametrize("whose", ["ours", "foreign"])
def test_of_a_session_without_its_leader_only_what_is_proven_ours_is_ended(way, whose):
    """A foreign daemon's leader may get the number of our old session, fork and exit, as daemons do."""
    said = subprocess.run(
        [sys.executable, "-c", LEAVE, way, whose],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        start_new_session=True,
    ).stdout
    session, ticks, left = (int(word) for word in said.split())
    old = replace(processes.identify(os.getpid()), pid=session, start_ticks=ticks, session=session)
    ours = whose == "ours"
    try:
        wait_for(lambda: guard.read_stat(left).comm == "sleep", "the program")
        assert (left in [stat.pid for stat in processes.session_members((old,))]) is ours
        doubtful = [stat.pid for stat in processes.unproven_members((old,))]
        assert doubtful == ([left] if whose == "foreign" and way == "stays" else [])
        assert processes.kill_sessions((old,)) == ()
        wait_for(lambda: (guard.read_stat(left) is None or guard.read_stat(left).dead) is ours, "the end")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(left, signal.SIGKILL)


def test_the_reaper_keeps_the_status_it_was_asked_to_keep():
    program = (
        "import os, time\n"
        "from dflashctl.edges.reaper import Reaper\n"
        "r = Reaper(); mine = os.fork()\n"
        "if not mine: os._exit(7)\n"
        "if not os.fork(): os._exit(3)\n"
        "r.track(mine); time.sleep(0.2)\n"
        "print(r.reap(), r.status(mine), r.reap())\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=20
    ).stdout
    assert said == "1 7 0\n"
    assert Reaper().status(10**9) is None


def test_the_screen_drops_what_nobody_takes_and_forgets_a_broken_one():
    screen = Screen()
    screen.start()
    seen = []

    def broken():
        seen.append("broken")
        raise OSError("gone")

    screen.post(lambda: seen.append("a"))
    screen.post(broken)
    wait_for(lambda: "broken" in seen, "the break")
    screen.post(lambda: seen.append("b"))
    assert screen.close()
    assert seen == ["a", "broken"]
    idle = Screen()
    for _ in range(1100):
        idle.post(lambda: None)
    assert idle.dropped == 100


def test_the_api_key_comes_from_the_environment_or_a_private_file(tmp_path):
    file = tmp_path / "key"
    file.write_text("from-file\n")
    file.chmod(0o600)
    assert api_key({}) is None
    assert api_key({"DFLASHCTL_API_KEY_FILE": str(file)}) == "from-file"
    assert api_key({"DFLASHCTL_API_KEY": "direct", "DFLASHCTL_API_KEY_FILE": str(file)}) == "direct"
    file.chmod(0o644)
    with pytest.raises(Permanent, match="can be read by others"):
        api_key({"DFLASHCTL_API_KEY_FILE": str(file)})
    with pytest.raises(Permanent, match="cannot be read"):
        api_key({"DFLASHCTL_API_KEY_FILE": str(tmp_path / "none")})
    file.chmod(0o600)
    for content, why in {
        b"": "is empty",
        b" \n": "is empty",
        b"two words": "cannot carry",
        b"two\nlines": "cannot carry",
        "schl\u00fcssel".encode(): "cannot carry",
        b"\xff\xfe": "cannot carry",
        b"a\0b": "cannot carry",
        b"x" * 5000: "larger than",
    }.items():
        file.write_bytes(content)
        with pytest.raises(Permanent, match=f"(?s){file}.*{why}"):
            api_key({"DFLASHCTL_API_KEY_FILE": str(file)})
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    with pytest.raises(Permanent, match=str(folder)):
        api_key({"DFLASHCTL_API_KEY_FILE": str(folder)})
    for key in ("two words", "schl\u00fcssel", "line\n", " "):
        with pytest.raises(Permanent, match="DFLASHCTL_API_KEY holds"):
            api_key({"DFLASHCTL_API_KEY": key})
    written = write_server_config(tmp_path, "k")
    assert written.stat().st_mode & 0o777 == 0o600
    assert written.read_text() == '{"api-key": "k", "admin-api-key": "k"}'


def test_runtime_folders_are_short_private_and_fresh(tmp_path):
    environ = {"DFLASHCTL_RUNTIME_DIR": "/tmp/dfc-runtime-test"}  # noqa: S108 - a short path is the point
    path = fresh_runtime_folder(environ, "a")
    (path / "left").write_text("")
    again = fresh_runtime_folder(environ, "a")
    assert again == path
    assert not list(again.iterdir())
    assert path != fresh_runtime_folder(environ, "b")
    assert len(str(path)) < 60
    subprocess.run(["rm", "-rf", environ["DFLASHCTL_RUNTIME_DIR"]], check=True)
    with pytest.raises(StateError, match="too long a path"):
        fresh_runtime_folder({"DFLASHCTL_RUNTIME_DIR": str(tmp_path / ("x" * 80))}, "a")


def test_the_tail_goes_over_rotated_files_and_the_follower_past_a_rotation(tmp_path):
    old, new = tmp_path / "log.1", tmp_path / "log"
    old.write_text("1\n2\n")
    new.write_text("3\n4\n")
    assert tail((old, new), 3) == ("2", "3", "4")
    assert tail((old, new), None) == ("1", "2", "3", "4")
    assert tail((old, new), 0) == ()
    assert tail((tmp_path / "none",), 5) == ()
    follower = Follower(new)
    with new.open("a") as file:
        file.write("5\nhal")
    assert follower.new_lines() == ("5",)
    with new.open("a") as file:
        file.write("f\n6\n")
    new.rename(old)
    new.write_text("7\n")
    assert follower.new_lines() == ("half", "6", "7")
    assert follower.new_lines() == ()
