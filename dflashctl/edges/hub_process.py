"""HubProcess: the worker as a child in its own session, killed with all it started in well under two seconds."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dflashctl.core.errors import Unavailable
from dflashctl.edges.hub_auth import is_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# That interpreter may have another dflashctl installed, and its own packages must win over those beside this one.
_PACKAGE = str(Path(__file__).resolve().parent.parent / "__init__.py")
_START = (
    "import sys; from importlib.util import module_from_spec, spec_from_file_location; sys.path[0:1] = []; "
    "spec = spec_from_file_location('dflashctl', sys.argv[1]); package = module_from_spec(spec); "
    "sys.modules['dflashctl'] = package; spec.loader.exec_module(package); "
    "from dflashctl.edges.hub_worker import main; main()"
)
_NEVER_GIVEN = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "DFLASHCTL_HF_TOKEN_FD", "PYTHONPATH")
_TAIL_LINES = 40
_TICK_S = 0.5

Event = dict[str, Any]


class HubProcess:
    """One child; `token` goes through its standard input, so neither argv nor environment shows it."""

    def __init__(
        self,
        *,
        python: str,
        environ: Mapping[str, str],
        cache: Path,
        token: str | None,
        xet: bool = True,
        attempts: int = 5,
    ) -> None:
        self._events: queue.Queue[Event | None] = queue.Queue()
        self._tail: collections.deque[str] = collections.deque(maxlen=_TAIL_LINES)
        self._token = token
        self._process = subprocess.Popen(
            [python, "-c", _START, _PACKAGE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=child_environment(environ, xet=xet),
            cwd="/",
            start_new_session=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._threads = [
            threading.Thread(target=t, daemon=True) for t in (self._read_events, self._read_talk)
        ]
        for thread in self._threads:
            thread.start()
        self._send({"token": token, "cache": str(cache), "attempts": attempts})
        self.hello = self._first()

    @property
    def pid(self) -> int:
        return self._process.pid

    def stream(self, op: str, **values: object) -> Iterator[Event | None]:
        """Events until "result" or "error", and None whenever nothing came for half a second."""
        self._send({"op": op, **values})
        while True:
            try:
                event = self._events.get(timeout=_TICK_S)
            except queue.Empty:
                yield None
                continue
            if event is None:
                raise self._died()
            yield event
            if event["event"] in {"result", "error"}:
                return

    def kill(self) -> None:
        """End the child's whole session now; partial files stay for the next transfer to go on with."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _first(self) -> Event:
        event = self._events.get()
        if event is None:
            raise self._died()
        return event

    def _send(self, request: Mapping[str, object]) -> None:
        stream = self._process.stdin
        if stream is None:
            return
        try:
            stream.write(json.dumps(request) + "\n")
            stream.flush()
        except BrokenPipeError:
            return  # its end is told by the event reader

    def _read_events(self) -> None:
        if self._process.stdout is not None:
            for line in self._process.stdout:
                self._events.put(json.loads(line))
        self._events.put(None)

    def _read_talk(self) -> None:
        if self._process.stderr is not None:
            for line in self._process.stderr:
                self._tail.append(line.rstrip().replace(self._token or "\0", "<token>"))

    def _died(self) -> Unavailable:
        self._threads[1].join(timeout=1.0)
        self.kill()
        return Unavailable(
            f"the download process ended with code {self._process.returncode}",
            hint="run the command again: it goes on where this ended",
            detail="\n".join(self._tail) or None,
        )


def child_environment(environ: Mapping[str, str], *, xet: bool) -> dict[str, str]:
    """The caller's environment without tokens, and with the switches that the library reads once at import."""
    child = {name: value for name, value in environ.items() if name not in _NEVER_GIVEN}
    child.update(
        HF_HUB_DISABLE_IMPLICIT_TOKEN="1",  # noqa: S106 - a switch
        HF_HUB_DISABLE_PROGRESS_BARS="1",
        HF_HUB_DISABLE_TELEMETRY="1",
        HF_HUB_DISABLE_UPDATE_CHECK="1",
        HF_HUB_VERBOSITY="error",
        PYTHONUNBUFFERED="1",
    )
    if not xet or is_on(environ.get("HF_HUB_DISABLE_XET")):
        child["HF_HUB_DISABLE_XET"] = "1"
    return child
