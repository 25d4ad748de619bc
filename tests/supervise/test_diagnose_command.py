"""diagnose and the words of a failure; down's wait for GPU memory."""

import gzip
import io
import os
import re
import signal
import socket
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from dflashctl.commands import down as down_module
from dflashctl.commands.diagnose import diagnose
from dflashctl.commands.down import down
from dflashctl.commands.status import status
from dflashctl.core.errors import NotRunning, UsageProblem
from dflashctl.core.instance import Phase
from dflashctl.core.machine import Gpu, GpuProcess, Machine
from dflashctl.env import Env
from dflashctl.supervise import explain
from dflashctl.ui.text import show
from tests.supervise.harness import LIMIT_S, wait_for
from tests.supervise.test_faults_start import NCCL, OOM
from tests.support.start_detached import start_detached

LOGS = Path(__file__).parents[1] / "signatures/logs"


def test_a_file_is_explained(harness):
    report = diagnose(harness.env, str(LOGS / "wrongdraft.log"))
    assert (report.exit_code, report.data.id) == (0, "draft_shape")
    assert report.data.evidence
    assert report.findings[0].fix == report.data.fix


def test_standard_input_is_explained(harness, monkeypatch):
    text = b"\xff\xfe no text\n" + (LOGS / "oom.log").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text), encoding="utf-8"))
    assert diagnose(harness.env, "-").data.id == "cuda_out_of_memory"
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(UsageProblem, match="closed"):
        diagnose(harness.env, "-")


def test_an_earlier_start_that_died_in_its_first_step_is_not_blamed(harness):
    harness.up("--die-at", "resolve", "--die-text", OOM)
    assert harness.ended() == 78
    harness.up()
    harness.reach_by(harness.started[-1])
    with (harness.state / "v1/instances/tiny/events.jsonl").open("a") as file:
        file.write("[" * 100_000 + "\n")
    assert diagnose(harness.env, "tiny").data.cause is None
    harness.stop()
    assert harness.ended() == 0


def test_an_instance_is_explained_by_its_last_start_only(harness):
    once = harness.folder / "died"
    harness.up(
        "--die-at", "load_target", "--die-text", NCCL, "--die-unless", str(once), timing={"restarts": 0}
    )
    assert harness.ended() == 4
    assert diagnose(harness.env).data.id == "nccl_failed"
    harness.up("--die-at", "allocate", "--die-text", OOM)
    assert harness.ended() == 78
    assert diagnose(harness.env, "tiny").data.id == "cuda_out_of_memory"
    finding = harness.result()["findings"][0]
    assert "memory.static_fraction" in finding["fix"]
    harness.up()
    harness.reach("ready")
    assert diagnose(harness.env, "tiny").data.cause is None
    harness.stop()
    harness.ended()


def test_why_a_server_that_is_ready_again_was_restarted(harness):
    once = harness.folder / "died"
    harness.up(
        "--die-at", "load_target", "--die-text", NCCL, "--die-unless", str(once), timing={"restarts": 3}
    )
    harness.reach("ready")
    report = diagnose(harness.env, "tiny")
    assert (report.data.id, report.data.restarts_since) == ("nccl_failed", 1)
    out = io.StringIO()
    show(report, out=out, err=io.StringIO())
    assert "tiny was restarted once since then" in out.getvalue()
    out = io.StringIO()
    show(status(harness.env, "tiny"), out=out, err=io.StringIO())
    assert "last exit  nccl_failed (" in out.getvalue()
    harness.stop()
    harness.ended()
    harness.up()
    harness.reach("ready")
    assert diagnose(harness.env, "tiny").data.cause is None, "what was before the last up is over"
    harness.stop()
    harness.ended()


def shown(report):
    out = io.StringIO()
    show(report, out=out, err=io.StringIO())
    return out.getvalue()


def test_a_server_killed_from_outside_is_explained_by_its_supervisor(harness):
    harness.up(timing={"restarts": 1})
    os.kill(harness.reach("ready").server.pid, signal.SIGKILL)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    harness.reach("ready")
    report = diagnose(harness.env, "tiny")
    assert (report.exit_code, report.data.id, report.data.in_log) == (0, "killed", False)
    assert report.data.restarts_since == 1
    text = shown(report)
    assert "cause: the server ended: killed by SIGKILL" in text
    assert "the log shows no failure, and ended with:" in text
    assert "dmesg" in text
    assert "last exit  killed by SIGKILL\n" in re.sub(r" +\n", "\n", shown(status(harness.env, "tiny")))
    harness.stop()
    harness.ended()


def test_a_hang_is_explained_by_its_supervisor_and_named_as_the_last_exit(harness):
    harness.up("--mute-after", "1", "--busy", timing={"restarts": 0})
    assert harness.ended() == 4
    report = diagnose(harness.env, "tiny")
    assert (report.data.id, report.data.in_log, report.data.restarts_since) == ("hang", False, 0)
    assert "requests are in work, but no token came" in report.data.cause
    assert "stacks.txt" in report.data.fix
    assert harness.record().last_exit.kind == "hang"
    assert "stacks.txt" in harness.result()["findings"][0]["fix"]
    assert "last exit  hang (killed by SIGKILL)" in shown(status(harness.env, "tiny"))


def test_a_supervisor_that_vanished_is_the_cause(harness):
    harness.up()
    harness.reach("ready")
    harness.stop(number=signal.SIGKILL)
    harness.ended()
    harness.nothing_left(LIMIT_S)
    report = diagnose(harness.env, "tiny")
    assert (report.data.id, report.data.in_log) == ("unclean_end", False)
    assert "went without a goodbye in phase ready" in report.data.cause


def test_what_a_start_says_is_not_the_reason_of_the_end_before(harness):
    harness.up(timing={"restarts": 1})
    os.kill(harness.reach("ready").server.pid, signal.SIGKILL)
    wait_for(lambda: harness.record().restarts_used == 1, "the restart")
    harness.reach("ready")
    harness.stop()
    harness.ended()
    events = [event for event in harness.env.instances.events("tiny") if event.attempt == 2]
    assert [event.text for event in events if event.phase is Phase.STARTING] == ["starting"]
    assert [event.text for event in events if event.phase is Phase.LOADING] == ["loading"]


def test_a_missing_log_is_said(harness):
    with pytest.raises(UsageProblem, match="no-such"):
        diagnose(harness.env, "/no-such.log")
    with pytest.raises(NotRunning):
        diagnose(harness.env)


class Gpus:
    """A machine whose one GPU gives its memory back only after so many looks."""

    def __init__(self, looks, pids=()):
        self.looks = looks
        self.pids = pids

    def snapshot(self):
        self.looks -= 1
        held = tuple(GpuProcess(pid=pid) for pid in self.pids) if self.looks >= 0 else ()
        free = 10 * 2**30 if self.looks >= 0 else 79 * 2**30
        gpu = Gpu(
            index=0,
            uuid="GPU-1",
            name="X",
            memory_total_bytes=80 * 2**30,
            memory_free_bytes=free,
            processes=held,
        )
        return Machine(gpus=(gpu,))


def served_on_gpu(harness):
    harness.start(harness.plan(gpus=("GPU-1",)))
    return harness.reach("ready")


def test_down_waits_until_gpu_memory_is_back(harness):
    served_on_gpu(harness)
    gpus = Gpus(looks=3)
    report = down(Env(environ=harness.environ, machine=gpus), "tiny")
    assert (report.exit_code, report.data.gpus) == (0, ("GPU-1",))
    assert gpus.looks < 0
    harness.ended()


def test_fault_49_gpu_memory_that_stays_is_a_failure_with_its_holder(harness, monkeypatch):
    monkeypatch.setattr(down_module, "_GPU_LIMIT_S", 0.3)
    record = served_on_gpu(harness)
    report = down(Env(environ=harness.environ, machine=Gpus(looks=10**6, pids=(record.server.pid,))), "tiny")
    assert report.exit_code == 1
    assert f"GPU 0 is still held by pid {record.server.pid}" in report.errors[0].message
    harness.ended()
    served_on_gpu(harness)
    report = down(Env(environ=harness.environ, machine=Gpus(looks=10**6)), "tiny")
    assert "GPU 0 still has 75.2 GB in use" in report.errors[0].message
    harness.ended()


def test_what_strangers_hold_on_the_gpu_is_theirs(harness):
    served_on_gpu(harness)
    assert down(Env(environ=harness.environ, machine=Gpus(looks=10**6, pids=(1,))), "tiny").exit_code == 0
    harness.ended()


def test_a_record_keeps_the_fix(harness):
    harness.up("--die-at", "allocate", "--die-text", OOM)
    harness.ended()
    record = harness.record()
    assert record.last_exit.fix
    assert replace(record.last_exit, fix=None).kind == "cuda_out_of_memory"


@pytest.mark.parametrize("ran_before", [False, True])
def test_a_taken_port_is_explained_with_its_fix(harness, ran_before):
    if ran_before:
        harness.up()
        harness.reach("ready")
        harness.stop()
        harness.ended()
    with socket.create_server(("127.0.0.1", harness.port)):
        harness.up()
        assert harness.ended() == 78
        report = diagnose(harness.env, "tiny")
    told = harness.result()["findings"][0]
    assert (report.data.id, report.data.in_log, report.data.permanent) == ("port_taken", False, True)
    assert (report.data.cause, report.data.fix) == (told["summary"], told["fix"])
    assert "--port" in report.data.fix


def test_a_start_that_ended_before_its_server_is_not_explained_by_an_older_log(harness):
    harness.up("--die-at", "allocate", "--die-text", OOM)
    harness.ended()
    environ = {**harness.environ, "DFLASHCTL_RUNTIME_DIR": "/proc/nope"}
    told = start_detached(harness.plan(), Env(environ=environ)).findings[0]
    report = diagnose(harness.env, "tiny")
    assert (report.data.id, report.data.permanent) == ("not_started", True)
    assert (report.data.cause, report.data.fix) == (told.summary, told.fix)


@pytest.mark.parametrize("source", ["file", "standard input"])
def test_a_packed_log_is_unpacked_and_a_cut_one_as_far_as_it_goes(harness, monkeypatch, source):
    whole = gzip.compress((LOGS / "wrongdraft.log").read_bytes() + os.urandom(9999).hex().encode())
    for content in (whole, whole[:-2000]):
        path = harness.folder / "multi.log.gz"
        path.write_bytes(content)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
        report = diagnose(harness.env, str(path) if source == "file" else "-")
        assert (report.data.id, report.data.unpacked) == ("draft_shape", True)
        assert "unpacked" in shown(report)


def test_of_a_huge_packed_log_the_end_is_read(harness, monkeypatch):
    monkeypatch.setattr(explain, "_LIMIT_BYTES", 1_000_000)
    path = harness.folder / "huge.log.gz"
    path.write_bytes(gzip.compress(b"0123456789abcde\n" * 500_000))
    assert diagnose(harness.env, str(path)).data.lines_read == 62_500


BINARY = {
    "random": os.urandom(300_000),
    "zeros and numbers": struct.pack("<20000d", *range(20_000)),
    "gzip of random": gzip.compress(os.urandom(300_000)),
    "utf-16": "Traceback (most recent call last):\n".encode("utf-16") * 100,
    "gzip cut in its head": gzip.compress(b"x")[:9],
}


@pytest.mark.parametrize("kind", BINARY)
@pytest.mark.parametrize("source", ["file", "standard input"])
def test_what_is_no_text_is_no_log(harness, monkeypatch, kind, source):
    path = harness.folder / "what.log"
    path.write_bytes(BINARY[kind])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(BINARY[kind]), encoding="utf-8"))
    with pytest.raises(UsageProblem, match=r"no text, so it is no log|no whole gzip file") as caught:
        diagnose(harness.env, str(path) if source == "file" else "-")
    assert caught.value.hint


@pytest.mark.parametrize(
    "around",
    [
        lambda log: log,
        lambda log: bytes(200_000) + log,
        lambda log: b"\xff\xfe\x00\x01" + log,
        lambda log: "größere Änderung 草稿模型\n".encode() * 500 + log,
        lambda log: b"\x1b[31mred\x1b[0m\r\n" * 500 + log,
    ],
    ids=["plain", "cut while it was written", "odd bytes", "other scripts", "colours"],
)
def test_a_log_with_odd_bytes_is_a_log(harness, around):
    path = harness.folder / "odd.log"
    path.write_bytes(around((LOGS / "wrongdraft.log").read_bytes()))
    assert diagnose(harness.env, str(path)).data.id == "draft_shape"


def test_an_empty_log_shows_no_failure(harness):
    (harness.folder / "empty.log").touch()
    assert diagnose(harness.env, str(harness.folder / "empty.log")).data.cause is None
