"""The installed program as a real process, with its own state folder: `Program(tmp_path).run("up", …)`."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

LIMIT_S = 60.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Program:
    """Runs `python -m dflashctl`; `close` ends every instance that is still up. `prefix` stands before the words."""

    def __init__(self, folder: Path, *, prefix: tuple[str, ...] = (), **environment: str) -> None:
        self.folder = folder
        self.prefix = prefix
        self.state = folder / "state"
        self.processes: list[subprocess.Popen] = []
        ours = ("DFLASHCTL_", "HF_", "XDG_", "PYTHONUNBUFFERED")  # users have buffered streams
        kept = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "DFLASHCTL_STATE_DIR": str(self.state),
            "DFLASHCTL_RUNTIME_DIR": tempfile.mkdtemp(prefix="d"),  # short: UNIX sockets lie below it
            **environment,
        }

    def start(self, *words: str, **options) -> subprocess.Popen:
        process = subprocess.Popen(
            [*self.prefix, sys.executable, "-m", "dflashctl", *words],
            **{
                "env": self.environment,
                "cwd": self.folder,
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                **options,
            },
        )
        self.processes.append(process)
        return process

    def run(self, *words: str) -> subprocess.CompletedProcess:
        process = self.start(*words)
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def json(self, *words: str) -> dict:
        result = self.run(*words, "--json")
        try:
            return json.loads(result.stdout)
        except ValueError as error:
            raise AssertionError(f"{words}: {result.stdout!r} {result.stderr}") from error

    def record(self, name: str) -> dict:
        try:
            return json.loads((self.state / "v1" / "instances" / name / "instance.json").read_text())
        except (OSError, ValueError):
            return {}

    def close(self) -> None:
        for process in [p for p in self.processes if p.poll() is None]:
            process.terminate()
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        folder = self.state / "v1" / "instances"
        for name in [p.name for p in folder.iterdir()] if folder.is_dir() else []:
            self.run("down", name)


def wait_for(condition, what: str, limit_s: float = LIMIT_S):
    """The first true value of `condition`."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"{what} did not happen within {limit_s} s")


def answers(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def processes_with(word: str) -> list[int]:
    """Pids of living processes with `word` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
                state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if word.encode() in words and state != "Z":
                found.append(int(entry.name))
    return found


INTERRUPT = signal.SIGINT
TERMINATE = signal.SIGTERM
