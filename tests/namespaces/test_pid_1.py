"""dflashctl as PID 1: it reaps, TERM drains and exits 0, a crash of the server gives the server's own status."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dflashctl.env import Env
from tests.supervise.harness import ROOT, alive, free_port, parent, stat_fields, wait_for

UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def may_unshare():
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


pytestmark = [
    pytest.mark.namespaces,
    pytest.mark.skipif(
        not may_unshare() and not os.environ.get("DFLASHCTL_REQUIRE_NAMESPACES"),
        reason="unshare(1) is not allowed here",
    ),
]


class Init:
    """`dflashctl up tiny-cpu` as PID 1 of a namespace of its own; `pid` is what this side knows it by."""

    def __init__(self, folder, *words):
        self.port = free_port()
        self.state = folder / "state"
        environ = {**os.environ, "DFLASHCTL_STATE_DIR": str(self.state), "PYTHONPATH": str(ROOT)}
        self.env = Env(environ=environ)
        self.out = open(folder / "out", "w+b")  # noqa: SIM115 - closed in close
        self.process = subprocess.Popen(
            [*UNSHARE, sys.executable, "-m", "dflashctl", "up", "tiny-cpu", "--port", str(self.port), *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=self.out,
            stderr=subprocess.STDOUT,
        )
        self.pid = wait_for(lambda: next(iter(children(self.process.pid)), None), "the namespace")

    def reach(self, phase):
        def there():
            assert self.process.poll() is None, self.said()
            record = self.env.instances.read("tiny-cpu").record
            return record if record is not None and record.phase.value == phase else None

        return wait_for(there, phase)

    def server(self):
        """The server's pid as seen from here."""
        return wait_for(
            lambda: next((pid for pid in children(self.pid) if "dflashctl.reference" in command(pid)), None),
            "the server",
        )

    def inside(self, program):
        target = ["nsenter", "--target", str(self.pid), "--pid", "--mount", sys.executable, "-c", program]
        subprocess.run(target, check=True)

    def ended(self, limit_s=15):
        return self.process.wait(limit_s)

    def said(self):
        self.out.seek(0)
        return self.out.read().decode()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.out.close()
        wait_for(lambda: not alive(self.pid), "the end of the namespace", 3)


@pytest.fixture
def start(tmp_path):
    made = []

    def begin(*words):
        made.append(Init(tmp_path, *words))
        return made[-1]

    yield begin
    for init in made:
        init.close()


def children(pid):
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and parent(int(name)) == pid]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def test_term_drains_and_exits_0(start):
    init = start()
    init.reach("ready")
    server = init.server()
    os.kill(init.pid, signal.SIGTERM)
    assert init.ended() == 0, init.said()
    assert not alive(server)
    record = init.env.instances.read("tiny-cpu").record
    assert (record.phase.value, record.restarts_budget) == ("stopped", 0)


def test_term_before_it_is_ready_exits_0(start):
    init = start()
    wait_for(lambda: init.env.instances.read("tiny-cpu").record, "a record")
    os.kill(init.pid, signal.SIGTERM)
    assert init.ended() == 0


def test_the_servers_crash_gives_its_exit_status(start):
    init = start()
    init.reach("ready")
    os.kill(init.server(), signal.SIGKILL)
    assert init.ended() == 137
    assert init.env.instances.read("tiny-cpu").record.phase.value == "failed"


def test_a_permanent_failure_is_78_here_too(start):
    init = start("--", "--model-path", "/no/such/model")
    assert init.ended() == 78


def test_fault_44_strays_and_200_orphans_leave_no_zombie_and_steal_no_status(start):
    init = start()
    init.reach("ready")
    server = init.server()
    orphans = (
        "import os, sys, time\n"
        "for n in range(200):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(0.05)\n"
        "        os._exit(n % 256)\n"
        "for n in range(200):\n"
        "    os.wait()\n"
    )
    init.inside(orphans)
    wait_for(lambda: not [pid for pid in children(init.pid) if pid != server], "all strays to be reaped", 5)
    assert init.process.poll() is None
    assert stat_fields(server)[0] in "SR"
    os.kill(server, signal.SIGKILL)
    assert init.ended() == 137


def test_without_a_terminal_it_writes_only_below_its_own_folders(start):
    init = start()
    init.reach("ready")
    writes = []
    for fd in os.listdir(f"/proc/{init.pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since it was listed
            writes.append(os.readlink(f"/proc/{init.pid}/fd/{fd}"))
    files = [path for path in writes if path.startswith("/") and not path.startswith(("/dev/", "/proc/"))]
    assert files
    assert all(path.startswith(str(init.state)) or path.endswith("/out") for path in files)
    os.kill(init.pid, signal.SIGTERM)
    assert init.ended() == 0


REUSE = """
import os, signal, subprocess, sys
from dataclasses import replace
from dflashctl.edges import processes
first = subprocess.Popen(["sleep", "60"], start_new_session=True)
old = replace(processes.identify(first.pid), session=first.pid)
first.kill(); first.wait()
import time; time.sleep(0.05)
with open("/proc/sys/kernel/ns_last_pid", "w") as file:
    file.write(str(old.pid - 1))
second = subprocess.Popen(["sleep", "60"], start_new_session=True)
if second.pid != old.pid:
    sys.exit(77)
ok = (
    not processes.is_alive(old)
    and not processes.send(old, signal.SIGKILL)
    and processes.session_members((old,)) == ()
    and processes.kill_sessions((old,)) == ()
    and second.poll() is None
)
second.kill(); second.wait()
sys.exit(0 if ok else 1)
"""


def test_fault_24_a_pid_that_was_given_out_again_is_a_stranger():
    for _ in range(5):
        done = subprocess.run(
            [*UNSHARE, sys.executable, "-c", REUSE], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
        )
        if done.returncode != 77:
            break
        time.sleep(0.01)
    assert done.returncode == 0
