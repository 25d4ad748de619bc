"""A reference engine in its own process, and a small client for it, for the tests of this folder."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from dflashctl.reference import tiny_paths

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TARGET, DRAFT = (str(path) for path in tiny_paths())
SPECULATIVE = ("--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", DRAFT)
QUESTION = "Ana has 12 apples. Ben gives Ana 7 more apples. How many apples does Ana have now?"
LONG_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Reply:
    status: int
    body: Any
    text: str


class Server:
    """``python -m dflashctl.reference`` with extra arguments, on a free port."""

    def __init__(
        self,
        log: Path,
        *arguments: str,
        port: int | None = None,
        model: str = TARGET,
        log_reader: bool = True,
    ) -> None:
        self.port = free_port() if port is None else port
        self.log_path = log
        command = [sys.executable, "-m", "dflashctl.reference", "--model-path", model]
        with log.open("wb") if log_reader else _broken_pipe() as file:
            self.process = subprocess.Popen(
                [*command, "--port", str(self.port), *arguments],
                stdout=file,
                stderr=file,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text(encoding="utf-8")

    def wait_ready(self) -> Server:
        self.wait_status("/ready", 200)
        return self

    def wait_status(self, path: str, status: int) -> None:
        end = time.monotonic() + LONG_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self.get(path).status == status:
                    return
            except OSError:
                pass
            time.sleep(0.01)
        raise AssertionError(f"{path} never said {status}\n{self.log}")

    def get(self, path: str, **headers: str) -> Reply:
        return self.send("GET", path, None, headers)

    def post(self, path: str, body: object, **headers: str) -> Reply:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.send("POST", path, raw, headers)

    def send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONG_S)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            text = response.read().decode()
        finally:
            connection.close()
        try:
            return Reply(status=response.status, body=json.loads(text), text=text)
        except ValueError:
            return Reply(status=response.status, body=text, text=text)

    def generate(self, text: str | list[str], *, params: dict[str, Any] | None = None, **more: Any) -> Any:
        sampling = {"max_new_tokens": 200, "temperature": 0, **(params or {})}
        reply = self.post("/generate", {"text": text, "sampling_params": sampling, **more})
        assert reply.status == 200, reply.text
        return reply.body

    def chat(self, content: str, **more: Any) -> Reply:
        messages = [{"role": "user", "content": content}]
        return self.post("/v1/chat/completions", {"messages": messages, "temperature": 0, **more})

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(LONG_S)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LONG_S)


class Stream:
    """A streamed answer, read event by event on its own connection."""

    def __init__(self, server: Server, path: str, body: dict[str, Any]) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=LONG_S)
        self.connection.request("POST", path, json.dumps({**body, "stream": True}))
        self.response = self.connection.getresponse()

    def __iter__(self) -> Iterator[Any]:
        for line in self.response:
            if line.startswith(b"data: "):
                text = line[6:].strip()
                yield "[DONE]" if text == b"[DONE]" else json.loads(text)
        self.connection.close()

    def close(self) -> None:
        self.response.close()
        self.connection.close()


def _broken_pipe() -> BinaryIO:
    """Return the end to write of a pipe whose reader is gone."""
    read, write = os.pipe()
    os.close(read)
    return os.fdopen(write, "wb")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def prompt(question: str = QUESTION) -> str:
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


def in_threads(*calls: Any) -> None:
    """Run the calls at the same time and wait for all."""
    failures: list[BaseException] = []

    def guarded(call: Any) -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def wait_until(condition: Any, what: str) -> None:
    end = time.monotonic() + LONG_S
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.005)
    raise AssertionError(f"never: {what}")
