"""A worker process as its parent sees it: configuration in, messages out, stopped by closing its pipe."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dflashctl.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

_ROOT = str(Path(__file__).resolve().parents[2])
# Isolated and without site: nothing that the user's environment brings may run in the measuring process.
_PROGRAM = f"import sys; sys.path.insert(0, {_ROOT!r}); from dflashctl.bench.worker import main; main()"


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """A process that starts meanwhile never sees a stop that is sent to the whole group: it is the parent's business."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerProcess:
    """Use as a context: the process is gone when it ends."""

    def __init__(self, number: int, config: dict[str, object], bodies_fd: int) -> None:
        self.ready = False
        self.reported = False
        self.ended = False
        self.number = number
        self._rest: list[bytes] = []  # the pieces of a line that is not whole yet
        with _signals_held():
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(bodies_fd,),
            )
        data = json.dumps(config).encode()
        self._tell(b"%d\n%b" % (len(data), data))

    @property
    def output(self) -> IO[bytes]:
        stream = self._process.stdout
        if stream is None:
            raise Unavailable("the load process has no output")
        return stream

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None and not self.reported:
            self._process.kill()
        self.stop()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def go(self, start_s: float) -> None:
        """The measured span starts at `start_s` of the monotonic clock."""
        self._tell(b"go %r\n" % start_s)

    def stop(self) -> None:
        """Close the pipe: the worker ends what is in flight and reports."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def _tell(self, data: bytes) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(data)
                self._process.stdin.flush()

    def read(self, on_message: Callable[[WorkerProcess, dict[str, object]], None]) -> bool:
        """Take what the worker has said; False when it has ended. Raises Unavailable when it died."""
        data = os.read(self.output.fileno(), 1 << 20)
        if not data:
            self._end()
            return False
        first, *others = data.split(b"\n")
        self._rest.append(first)
        for piece in others:
            line, self._rest = b"".join(self._rest), [piece]
            message = json.loads(line)
            self.ready = self.ready or "ready" in message
            self.reported = self.reported or "health" in message
            on_message(self, message)
        return True

    def _end(self) -> None:
        self.ended = True
        code = self._process.wait()
        if not self.reported:
            stderr = self._process.stderr.read() if self._process.stderr is not None else b""
            last = stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
            raise Unavailable(
                f"the load process ended with code {code} before it reported: {last or 'no reason given'}",
                detail=stderr.decode("utf-8", "replace")[-4000:] or None,
            )
