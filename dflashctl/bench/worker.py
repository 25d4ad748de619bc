"""The load generator's process: configuration on standard input, results on standard output, JSON lines.

Imports only what it needs (the standard library and its own modules), to stay small and start fast.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from dflashctl.bench.driver import Driver
from dflashctl.bench.plan import Plan, Target
from dflashctl.bench.wire import batches, record_row

if TYPE_CHECKING:
    from dflashctl.bench.flight import Flight


class Worker:
    """Connect, warm up, wait for the start, run, report."""

    def __init__(self, config: dict[str, object], start_fd: int) -> None:
        self._config = config
        self._start_fd = start_fd
        self._rows: list[list[Any]] = []
        self._chunks = self._mismatches = 0
        self._warming = True
        self._errors = self._tokens = self._steps = 0
        requests = config["requests"]
        if not isinstance(requests, list):
            raise TypeError("requests")
        self._driver = Driver(Target(config, requests), self._done, self._beat)
        self._total = len(_numbers(config["plan"]))

    def run(self) -> None:
        """The whole life of the process, up to its last report."""
        driver = self._driver
        driver.connect(int(str(self._config["connections"])))
        warm = _numbers(self._config["warmup"])
        limit = self._limit()
        if warm:
            driver.run(Plan(warm, limit=limit or 8))
        say({"ready": True, "warmup_errors": self._errors, "warmup": len(warm)})
        start = self._await_start()
        if start is None:
            return
        self._rows.clear()
        self._warming = False
        self._errors = self._tokens = self._steps = self._chunks = self._mismatches = 0
        self._measure(start, limit)

    def _measure(self, start: float, limit: int | None) -> None:
        driver = self._driver
        offsets = self._config["times"]
        times = [start + float(t) for t in offsets] if isinstance(offsets, list) else None
        duration = self._config["max_duration_s"]
        stop_at = start + float(str(duration)) if duration is not None else float("inf")
        driver.listen(self._start_fd)
        gc.collect()
        gc.freeze()
        gc.disable()
        while (left := start - monotonic()) > 0:
            _nap(left)
        driver.pulse.begin(monotonic())
        driver.run(Plan(_numbers(self._config["plan"]), limit=limit, times=times), stop_at=stop_at)
        if driver.stopped:
            driver.abort("aborted", "stopped by the user")
        health = driver.pulse.figures()
        gc.enable()
        self._report(health)
        driver.close()

    def _limit(self) -> int | None:
        limit = self._config["limit"]
        return None if limit is None else int(str(limit))

    def _await_start(self) -> float | None:
        """The start time from the parent; None when it is gone or stops."""
        word = _line(self._start_fd).split()
        return float(word[1]) if len(word) == 2 and word[0] == b"go" else None  # noqa: PLR2004

    def _done(self, flight: Flight) -> None:
        tally = flight.answer.tally
        self._rows.append(record_row(flight))  # the flight itself, some kilobytes, can go
        self._chunks += tally.chunks
        self._mismatches += tally.mismatches
        if tally.error is not None:
            self._errors += 1
        self._tokens += tally.completion_tokens or 0 if tally.verify_steps else 0
        self._steps += tally.verify_steps or 0

    def _beat(self, now: float) -> None:
        say({
            "beat": now,
            "done": len(self._rows),
            "errors": self._errors,
            "tokens": self._tokens,
            "steps": self._steps,
            "flying": len(self._driver.flying),
            "warming": self._warming,
        })  # fmt: skip

    def _report(self, health: dict[str, object]) -> None:
        for batch in batches(self._rows):
            say({"records": batch})
        driver = self._driver
        say({
            "health": health,
            "interrupted": driver.stopped,
            "backlog_max": driver.backlog.size_max,
            "parsed_busy": driver.backlog.parsed_busy,
            "chunks": self._chunks,
            "mismatches": self._mismatches,
        })  # fmt: skip


def say(message: dict[str, object]) -> None:
    """One JSON line on standard output, written whole."""
    data = json.dumps(message, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def _nap(seconds: float) -> None:
    """Sleep most of a wait, so that the start is met to some microseconds."""
    sleep(seconds - 0.001 if seconds > 0.002 else 0)  # noqa: PLR2004


def _numbers(value: object) -> list[int]:
    return [int(n) for n in value] if isinstance(value, list) else []


def _line(fd: int) -> bytes:
    """Read one line from an unbuffered descriptor; what there is at its end."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(fd, 1)
        if not byte:
            break
        line += byte
    return line


def main() -> None:
    """Entry of the process; a stop is the parent's business, which then stops this process by its pipe."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    size = int(_line(0))
    parts = []
    while size:
        parts.append(os.read(0, min(size, 1 << 20)))
        if not parts[-1]:
            sys.exit(1)
        size -= len(parts[-1])
    Worker(json.loads(b"".join(parts)), 0).run()


if __name__ == "__main__":
    main()
