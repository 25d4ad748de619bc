"""Faults of logs, readers and terminals, by their number in the fault list."""

import fcntl
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from dflashctl.commands.down import down
from dflashctl.core.plan_file import dump_plan
from dflashctl.core.report import to_json
from dflashctl.edges.log_file import LogFile
from tests.supervise.harness import DRIVER, PACE, strip_stamps, wait_for


def memory_kib(pid):
    return next(
        int(line.split()[1])
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM")
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small tmpfs needs root")
def test_fault_28_a_full_log_disk_stops_nobody_and_logging_resumes(harness):
    logs = harness.state / "v1/instances/tiny/logs"
    logs.mkdir(parents=True, mode=0o700)
    for folder in (harness.state, *logs.parents):
        if harness.state in (folder, *folder.parents):
            folder.chmod(0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", str(logs)], check=True)
    try:
        harness.up("--chatter-s", "0.01")
        pid = harness.reach("ready").server.pid
        (logs / "filler").write_bytes(b"x" * 40_000)
        wait_for(lambda: harness.record().log_lost_lines > 5, "lost lines")
        assert harness.phase() == "ready"
        (logs / "filler").unlink()
        wait_for(lambda: "lines lost: they could not be written" in harness.log(), "the log to resume")
        assert harness.record().server.pid == pid
        harness.stop()
        assert harness.ended() == 0
    finally:
        subprocess.run(["umount", str(logs)], check=True)


@pytest.mark.parametrize("way", ["removed", "moved", "replaced", "with its folder"])
def test_a_log_that_is_taken_away_is_begun_anew(tmp_path, way):
    folder = tmp_path / "logs"
    folder.mkdir()
    path = folder / "server.log"
    log = LogFile(path)
    log.write(["before"])
    if way == "with its folder":
        shutil.rmtree(folder)
    elif way == "moved":
        path.rename(tmp_path / "kept")
    else:
        path.unlink()
        if way == "replaced":
            path.write_text("other\n")
    log.write(["after"])
    log.write(["later"])
    log.close()
    assert path.read_text().splitlines()[-2:] == ["after", "later"]
    assert log.lost_lines == 0


def test_rotated_logs_are_bounded_and_private(tmp_path):
    log = LogFile(tmp_path / "server.log", max_bytes=200, kept=2)
    for number in range(100):
        log.write([f"line {number}"])
    log.close()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["server.log", "server.log.1", "server.log.2"]
    assert all(
        path.stat().st_size <= 200 and path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir()
    )
    assert (tmp_path / "server.log").read_text().endswith("line 99\n")


def test_fault_29_a_flood_and_a_giant_line_stay_bounded(harness):
    harness.up("--flood-mib", "100", "--long-line-mib", "10")
    harness.reach("ready")
    wait_for(lambda: "flood over" in harness.log() or "lines suppressed" in harness.log(), "the flood")
    assert harness.ask("/fake")["completions"] >= 1
    size = sum(path.stat().st_size for path in harness.env.instances.log_files("tiny"))
    assert size < 8 * 1024 * 1024
    assert memory_kib(harness.started[-1].pid) < 200 * 1024
    harness.stop()
    assert harness.ended() == 0
    log = harness.log()
    assert "cut]" in log
    assert "lines suppressed]" in log
    assert max(map(len, log.splitlines())) < 20_000


def test_progress_bars_are_folded(harness):
    harness.up()
    harness.reach("ready")
    bars = [line for line in strip_stamps(harness.log()).splitlines() if "loading shards" in line]
    assert bars[-1].startswith("Multi-thread loading shards: 100%")
    assert len(bars) <= 2
    harness.stop()
    harness.ended()


def test_fault_30_a_stuck_reader_loses_lines_and_nothing_else(harness):
    reader, writer = os.pipe()
    harness.up("--chatter-s", "0.001", flags=("--screen",), stdout=writer)
    os.close(writer)
    harness.reach("ready")
    wait_for(lambda: harness.log().count("Decode batch") > 1500, "much output")
    assert harness.phase() == "ready"
    harness.stop()
    assert harness.ended() == 0
    assert harness.result()["screen_stuck"] is True
    os.close(reader)


def test_a_reader_that_keeps_up_sees_the_servers_lines(harness):
    up = harness.up(flags=("--screen",), stdout=subprocess.PIPE)
    harness.reach("ready")
    harness.stop()
    said = up.stdout.read().decode()
    assert harness.ended() == 0
    assert "The server is fired up and ready to roll!" in said
    assert "Gracefully exiting" in said
    assert "stopping: running requests have" in said
    up.stdout.close()


def test_a_reader_that_goes_away_is_not_missed(harness):
    reader, writer = os.pipe()
    harness.up("--chatter-s", "0.01", flags=("--screen",), stdout=writer)
    os.close(writer)
    harness.reach("ready")
    os.close(reader)
    before = harness.log().count("Decode batch")
    wait_for(lambda: harness.log().count("Decode batch") > before + 20, "more log")
    assert harness.phase() == "ready"
    harness.stop()
    assert harness.ended() == 0


class Terminal:
    """A supervisor in front of a pseudo-terminal, as its session's leader and foreground group."""

    def __init__(self, harness, *faults, flag="--screen", **options):
        self.harness = harness
        self.master, slave = pty.openpty()

        def lead():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            os.tcsetpgrp(slave, os.getpid())

        file = harness.folder / "plan-tty.json"
        file.write_text(dump_plan(harness.plan(*faults, **options)))
        self.process = subprocess.Popen(
            [sys.executable, str(DRIVER), str(file), json.dumps(to_json(PACE)), flag],
            env=harness.environ, stdin=slave, stdout=slave, stderr=slave, cwd=harness.folder, preexec_fn=lead,  # noqa: PLW1509 - no other way to take a terminal
        )  # fmt: skip
        self.process.plan_file = file
        self.process.said = ""
        harness.started.append(self.process)
        os.close(slave)
        os.set_blocking(self.master, False)

    def press(self, key):
        os.write(self.master, key)

    def read(self):
        with suppress(OSError):
            self.process.said += os.read(self.master, 65536).decode("utf-8", "replace")
        return self.process.said


def test_fault_31_a_closed_terminal_stops_the_foreground_in_order(harness):
    terminal = Terminal(harness, "--chatter-s", "0.02")
    harness.reach("ready")
    os.close(terminal.master)
    assert harness.ended() == 0
    assert harness.phase() == "stopped"
    assert "SIGHUP" in next(e.text for e in harness.events() if e.phase and e.phase.value == "draining")
    harness.nothing_left()


def test_fault_31_a_hang_up_means_nothing_detached(harness):
    harness.up(flags=("--detached",))
    harness.reach("ready")
    harness.stop(number=signal.SIGHUP)
    time.sleep(0.3)
    assert harness.phase() == "ready"
    harness.stop()
    assert harness.ended() == 0


def test_a_hang_up_that_is_ignored_from_the_start_means_nothing(harness):
    """As under nohup."""
    up = harness.start(harness.plan(), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    harness.reach("ready")
    harness.stop(number=signal.SIGHUP)
    harness.stop(number=signal.SIGTSTP)
    wait_for(lambda: "SIGTSTP is ignored" in harness.log(), "what came after it")
    assert harness.phase() == "ready"
    harness.stop()
    assert harness.ended(up) == 0


@pytest.mark.parametrize("flag", ["--screen", "--progress"])
def test_fault_32_ctrl_c_drains_and_says_so_and_the_server_never_sees_it(harness, flag):
    terminal = Terminal(harness, flag=flag)
    harness.reach("ready")
    terminal.press(b"\x03")
    wait_for(lambda: "stopping: running requests have" in terminal.read(), "the word")
    assert harness.ended() == 0
    assert "KeyboardInterrupt" not in harness.log()
    assert "SIGTERM received" in harness.log()
    os.close(terminal.master)


def test_fault_32_ctrl_c_twice_kills_at_once(harness):
    terminal = Terminal(harness, "--ignore-term", timing={"drain_timeout_s": 60.0})
    harness.reach("ready")
    terminal.press(b"\x03")
    wait_for(lambda: harness.phase() == "draining", "draining")
    harness.let_a_stop_be_over()
    terminal.press(b"\x03")
    assert harness.ended(limit_s=3) == 0
    os.close(terminal.master)


@pytest.mark.parametrize("flag", ["--screen", "--progress"])
def test_fault_33_ctrl_z_is_ignored_with_a_word(harness, flag):
    terminal = Terminal(harness, flag=flag)
    harness.reach("ready")
    terminal.press(b"\x1a")
    wait_for(lambda: "SIGTSTP is ignored" in terminal.read(), "the word")
    assert harness.ask("/v1/models")["data"][0]["id"] == "tiny"
    assert harness.phase() == "ready"
    terminal.press(b"\x03")
    assert harness.ended() == 0
    os.close(terminal.master)


SECRET = "sk-sentinel-0123456789"
TOKEN = "hf_sentinelsentinelsentinel00"


def test_no_secret_is_in_argv_log_state_or_the_servers_environment(harness):
    environ = {"DFLASHCTL_API_KEY": SECRET, "HF_TOKEN": TOKEN}
    up = harness.up("--tell-key", environ=environ, flags=("--screen",), stdout=subprocess.PIPE)
    seen = set()
    wait_for(lambda: seen.update(arguments(harness)) or harness.phase() == "ready", "ready")
    seen.update(arguments(harness))
    harness.stop()
    said = up.stdout.read().decode() + harness.stderr()
    up.stdout.close()
    assert harness.ended() == 0
    assert "token None" in harness.log()
    assert "<redacted>" in harness.log()
    written = "".join(path.read_text() for path in harness.state.rglob("*") if path.is_file())
    for secret in (SECRET, TOKEN):
        assert secret not in "".join(seen)
        assert secret not in written
        assert secret not in said
    assert seen


def test_a_key_that_a_killed_supervisor_left_is_swept(harness):
    up = harness.up("--stuck-at", "load_target", environ={"DFLASHCTL_API_KEY": "a-secret"})
    (left,) = wait_for(lambda: list(harness.runtime.glob("*/keys.yaml")), "the key's file")
    up.kill()
    up.wait()
    assert left.exists()
    assert down(harness.env, "tiny").exit_code == 0
    assert not list(harness.runtime.iterdir())


def test_the_key_file_is_private_and_gone_once_ready(harness):
    harness.up("--stuck-at", "capture", environ={"DFLASHCTL_API_KEY": SECRET})
    key_file = wait_for(lambda: list(harness.runtime.rglob("keys.yaml")), "the key file")[0]
    assert key_file.stat().st_mode & 0o777 == 0o600
    assert key_file.parent.stat().st_mode & 0o777 == 0o700
    harness.stop()
    harness.ended()
    assert not list(harness.runtime.rglob("keys.yaml"))
    harness.up(environ={"DFLASHCTL_API_KEY": SECRET})
    harness.reach("ready")
    wait_for(lambda: not list(harness.runtime.rglob("keys.yaml")), "the end of the key file")
    harness.stop()
    assert harness.ended() == 0


def arguments(harness):
    return {
        Path(f"/proc/{pid}/cmdline").read_text()
        for pid in harness.marked()
        if Path(f"/proc/{pid}/cmdline").exists()
    }
