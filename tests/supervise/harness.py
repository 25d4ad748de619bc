"""Harness: a supervisor as a real process over the fake server, its record, and the proof that nothing is left."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

from dflashctl.core.engine import Endpoints
from dflashctl.core.pace import Pace
from dflashctl.core.plan import Plan, PlannedModel, fingerprint
from dflashctl.core.plan_file import dump_plan
from dflashctl.core.profile import Timing
from dflashctl.core.report import to_json
from dflashctl.env import Env

ROOT = Path(__file__).resolve().parents[2]
FAKE = ROOT / "tests/fakes/fake_sglang.py"
DRIVER = ROOT / "tests/supervise/driver.py"
LIMIT_S = 20.0
PACE = Pace(
    tick_s=0.02,
    start_probe_s=0.05,
    metrics_s=0.05,
    probe_timeout_s=1.0,
    canary_timeout_s=0.3,
    canary_interval_s=0.3,
    tree_s=0.05,
    record_s=0.05,
    standstill_s=0.5,
    kill_after_s=0.3,
    backoff_s=(0.1, 0.2, 0.4),
)
TIMING = Timing(
    progress_timeout_s=5.0,
    ready_timeout_s=20.0,
    drain_timeout_s=0.5,
    hang_after_s=0.6,
    stable_after_s=600.0,
    restarts=2,
)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def wait_for(condition, what, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {limit_s:g} s in vain for {what}")


class Harness:
    def __init__(self, folder):
        self.folder = folder
        self.state = folder / "state"
        # Short, as sockets below it must fit into 107 bytes.
        self.runtime = Path(f"/tmp/dfc-{os.getpid()}-{abs(hash(str(folder))) % 10**6}")  # noqa: S108
        self.mark = str(folder)
        self.port = free_port()
        self.environ = {
            **os.environ,
            "DFLASHCTL_STATE_DIR": str(self.state),
            "DFLASHCTL_RUNTIME_DIR": str(self.runtime),
        }
        self.environ |= {"PYTHONPATH": str(ROOT)}
        self.env = Env(environ=self.environ)
        self.started = []

    def plan(self, *faults, name="tiny", program=None, timing=None, speculation=True, **changes):
        argv = program or (sys.executable, str(FAKE), "--port", str(self.port), "--mark", self.mark, *faults)
        model = PlannedModel(repo="acme/tiny", revision="a" * 40, path=None, model="/models/tiny")
        plan = Plan(
            profile="tiny",
            name=name,
            engine="sglang",
            engine_version="0.5.22",
            runtime="process",
            image=None,
            argv=argv,
            env=(),
            gpus=(),
            target=model,
            draft=model if speculation else None,
            block_size=8 if speculation else None,
            draft_window_size=None,
            host="127.0.0.1",
            port=self.port,
            served_model_name="tiny",
            timing=replace(TIMING, **(timing or {})),
            endpoints=Endpoints(ready="/ready"),
        )
        plan = replace(plan, **changes)
        return replace(plan, fingerprint=fingerprint(plan))

    def up(self, *faults, pace=None, flags=(), stdout=subprocess.DEVNULL, environ=None, **options):
        return self.start(
            self.plan(*faults, **options), pace=pace, flags=flags, stdout=stdout, environ=environ
        )

    def start(self, plan, *, pace=None, flags=(), stdout=subprocess.DEVNULL, environ=None, **popen):
        number = len(self.started)
        file = self.folder / f"plan-{number}.json"
        file.write_text(dump_plan(plan))
        process = subprocess.Popen(
            [
                sys.executable,
                str(DRIVER),
                str(file),
                json.dumps(to_json(replace(PACE, **(pace or {})))),
                *flags,
            ],
            env={**self.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            cwd=self.folder,
            **popen,
        )
        process.plan_file = file
        self.started.append(process)
        return process

    def snapshot(self, name="tiny"):
        return self.env.instances.read(name)

    def record(self, name="tiny"):
        return self.snapshot(name).record

    def phase(self, name="tiny"):
        record = self.record(name)
        return record.phase.value if record else None

    def reach(self, phase, name="tiny"):
        end = time.monotonic() + LIMIT_S
        while time.monotonic() < end:
            snapshot = self.snapshot(name)
            record = snapshot.record
            if record is not None and record.phase.value == phase and snapshot.supervised:
                return record
            dead = self.started and self.started[-1].poll() is not None
            if dead and phase not in ("stopped", "failed"):
                break
            time.sleep(0.01)
        raise AssertionError(
            f"never {phase}, but {self.phase(name)}: {record and record.reason}\n{self.log()}\n{self.stderr()}"
        )

    def reach_by(self, process, phase="ready", name="tiny"):
        """The record once that supervisor has reached `phase`."""

        def there():
            record = self.record(name)
            mine = record is not None and record.supervisor.pid == process.pid
            return record if mine and record.phase.value == phase else None

        return wait_for(there, f"{phase} of {process.pid}")

    def ended(self, process=None, limit_s=LIMIT_S):
        """The exit status of the supervisor."""
        process = process or self.started[-1]
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still {self.phase()}:\n{self.log()}") from None

    def result(self, process=None):
        return json.loads((process or self.started[-1]).plan_file.with_suffix(".result").read_text())

    def stderr(self, process=None):
        process = process or (self.started[-1] if self.started else None)
        if process is None or process.poll() is None:
            return ""
        if not hasattr(process, "said"):
            process.said = process.stderr.read().decode()
            process.stderr.close()
        return process.said

    def log(self, name="tiny"):
        return "".join(p.read_text() for p in self.env.instances.log_files(name))

    def events(self, name="tiny"):
        return self.env.instances.events(name)

    def phases(self, name="tiny"):
        return [e.phase.value for e in self.events(name) if e.kind == "phase"]

    def kinds(self, name="tiny"):
        return [e.kind for e in self.events(name)]

    def server_pid(self):
        return self.record().server.pid

    def workers(self):
        return [pid for pid in self.marked() if parent(pid) == self.server_pid()]

    def marked(self):
        """The living processes of this test, except the supervisors themselves."""
        return [
            pid
            for pid, line in command_lines()
            if self.mark in line and "driver.py" not in line and alive(pid)
        ]

    def ask(self, path, body=None, timeout=5.0):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data)
        with urllib.request.urlopen(request, timeout=timeout) as reply:
            return json.loads(reply.read())

    def stop(self, process=None, number=signal.SIGTERM):
        (process or self.started[-1]).send_signal(number)

    def let_a_stop_be_over(self, name="tiny"):
        """Until the next signal counts as another stop: those within a quarter of a second are one."""
        wait_for(lambda: time.time() - self.record(name).phase_since_s > 0.3, "the end of one stop")

    def nothing_left(self, limit_s=1.5):
        wait_for(lambda: not self.marked(), f"the end of {self.marked()}", limit_s)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", self.port))

    def end(self):
        """Stop what a failed test left, and refuse to pass when a test left something."""
        running = [p for p in self.started if p.poll() is None]
        for process in running:
            os.kill(process.pid, signal.SIGCONT)
            process.kill()
            process.wait()
        left = []
        try:
            wait_for(lambda: not self.marked(), "the end of all", 1.5)
        except AssertionError:
            left = self.marked()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        for process in self.started:
            self.stderr(process)
        subprocess.run(["rm", "-rf", str(self.runtime)], check=True)
        assert not running, "a supervisor was still there when the test ended"
        assert not left, f"left behind: {left}"


def command_lines():
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                yield int(name), Path(f"/proc/{name}/cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue


def stat_fields(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def alive(pid):
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in "ZX"


def parent(pid):
    fields = stat_fields(pid)
    return int(fields[1]) if fields else None


def strip_stamps(text):
    return re.sub(r"(?m)^\S+Z \S+ \| ", "", text)


def quiet(call):
    """None where the server went away before, in or after its answer."""
    try:
        return call()
    except (OSError, http.client.HTTPException, ValueError):
        return None
