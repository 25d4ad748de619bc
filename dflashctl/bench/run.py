"""The parent's side of a load run: start the processes, give them the plan, merge what they bring back."""

from __future__ import annotations

import contextlib
import os
import selectors
import tempfile
import time
from typing import TYPE_CHECKING, BinaryIO

from dflashctl.bench.merge import LoadParts, merged
from dflashctl.bench.process import WorkerProcess
from dflashctl.bench.schedule import poisson_times
from dflashctl.bench.shape import body_bytes, endpoint, head_bytes
from dflashctl.bench.spec import CHAT, GENERATE, BenchRequest, LoadProgress, LoadResult, LoadSpec
from dflashctl.core.errors import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_APIS = (CHAT, GENERATE)
_START_DELAY_S = 0.02
_OPEN_LOOP_CONNECTIONS = 256


def run_load(
    spec: LoadSpec,
    requests: Sequence[BenchRequest],
    notify: Callable[[LoadProgress], None] | None = None,
    *,
    warmup: Sequence[BenchRequest] = (),
) -> LoadResult:
    """Send all requests and return their records in the given order.

    Blocks. Ctrl-C ends the run early: what was done is returned with `interrupted`, the rest as aborted.
    Raises UsageProblem for a load that cannot be sent, Unavailable when no worker could reach the server.
    """
    if not requests:
        raise UsageProblem("no requests to send")
    with tempfile.TemporaryFile() as bodies, contextlib.ExitStack() as stack:
        places = _write_bodies(bodies, [*warmup, *requests], spec)
        times = poisson_times(len(requests), spec.rate, spec.seed) if spec.rate is not None else None
        configs = worker_configs(spec, places, warmups=len(warmup), bodies_fd=bodies.fileno(), times=times)
        workers = [
            stack.enter_context(WorkerProcess(number, config, bodies.fileno()))
            for number, config in enumerate(configs)
        ]
        last = min(times[-1], spec.max_duration_s or times[-1]) if times is not None else None
        parts = _Run(workers, len(requests), notify, last_send_s=last).run()
    return merged(parts, [r.id for r in requests], first_index=len(warmup))


def _write_bodies(file: BinaryIO, requests: Sequence[BenchRequest], spec: LoadSpec) -> list[list[int]]:
    """All bodies one after the other; [api, offset, size] of each."""
    places, offset = [], 0
    for request in requests:
        if request.api not in _APIS:
            raise UsageProblem(f"request {request.id!r} has the unknown interface {request.api!r}")
        body = body_bytes(request, spec)
        file.write(body)
        places.append([_APIS.index(request.api), offset, len(body)])
        offset += len(body)
    file.flush()
    return places


def worker_configs(
    spec: LoadSpec,
    places: list[list[int]],
    *,
    warmups: int,
    bodies_fd: int,
    times: list[float] | None = None,
) -> list[dict[str, object]]:
    """One configuration a process: requests dealt out in turn, the concurrency split as evenly as it goes.

    `times`: when each measured request goes, in seconds from the start; None for a closed loop.
    """
    host, port, tls = endpoint(spec.url)
    headers = {**key_header(spec), **spec.headers}
    measured = list(range(warmups, len(places)))
    common: dict[str, object] = {
        "host": host,
        "port": port,
        "tls": tls,
        "heads": [head_bytes(spec.url, api, headers).decode("latin-1") for api in _APIS],
        "requests": places,
        "bodies_fd": bodies_fd,
        "chunk_usage": spec.chunk_usage,
        "keep_text": spec.keep_text,
        "text_end": spec.text_end,
        "stall_s": spec.stall_s,
        "timeout_s": spec.timeout_s,
        "connect_timeout_s": spec.connect_timeout_s,
        "max_duration_s": spec.max_duration_s,
        "ca_file": str(spec.ca_file) if spec.ca_file else None,
        "verify_tls": spec.verify_tls,
    }
    count = spec.processes
    return [
        {
            **common,
            "limit": (limit := _share(spec.concurrency, count, n)),
            "plan": measured[n::count],
            "warmup": list(range(warmups))[n::count],
            "times": times[n::count] if times is not None else None,
            "connections": _connections(limit, len(measured[n::count])),
        }
        for n in range(count)
    ]


def _share(total: int | None, count: int, n: int) -> int | None:
    return None if total is None else total // count + (1 if n < total % count else 0)


def _connections(limit: int | None, requests: int) -> int:
    """How many to open before the clock starts; an open loop without a limit opens more when it needs them."""
    return min(requests, limit if limit is not None else _OPEN_LOOP_CONNECTIONS)


def key_header(spec: LoadSpec) -> dict[str, str]:
    """The Authorization field from the environment or a file, if the load names one; UsageProblem when it is empty."""
    if spec.key_env is not None:
        key, place = os.environ.get(spec.key_env, ""), f"variable {spec.key_env}"
    elif spec.key_file is not None:
        place = f"file {spec.key_file}"
        try:
            key = spec.key_file.read_text(encoding="utf-8")
        except OSError as problem:
            raise UsageProblem(f"cannot read the API key from {place}: {problem.strerror}") from problem
    else:
        return {}
    if not key.strip():
        raise UsageProblem(f"the {place} holds no API key")
    return {"Authorization": f"Bearer {key.strip()}"}


class _Run:
    """Waits on the workers' pipes until each has reported or died."""

    def __init__(
        self,
        workers: list[WorkerProcess],
        total: int,
        notify: Callable[[LoadProgress], None] | None,
        *,
        last_send_s: float | None,
    ) -> None:
        self._workers = workers
        self._total = total
        self._last_send_s = last_send_s
        self._notify = notify
        self._parts = LoadParts()
        self._beats: dict[int, dict[str, object]] = {}
        self._begun_s = time.monotonic()
        self._going = False

    def run(self) -> LoadParts:
        with selectors.DefaultSelector() as selector:
            for number, worker in enumerate(self._workers):
                selector.register(worker.output, selectors.EVENT_READ, number)
            self._until(selector, self._all_ready)
            self._begun_s = time.monotonic()
            for worker in self._workers:
                worker.go(self._begun_s + _START_DELAY_S)
            self._going = True
            self._until(selector, self._all_reported)
        return self._parts

    def _until(self, selector: selectors.BaseSelector, reached: Callable[[], bool]) -> None:
        while not self._served(selector, reached):
            for worker in self._workers:
                worker.stop()

    def _served(self, selector: selectors.BaseSelector, reached: Callable[[], bool]) -> bool:
        """Serve the workers' messages; False when Ctrl-C came first, after which they report what they have."""
        try:
            while not reached():
                for key, _ in selector.select():
                    if not self._workers[key.data].read(self._on_message):
                        selector.unregister(key.fileobj)
        except KeyboardInterrupt:
            if not self._going:
                raise
            return False
        return True

    def _all_ready(self) -> bool:
        return all(worker.ready or worker.ended for worker in self._workers)

    def _all_reported(self) -> bool:
        return all(worker.reported or worker.ended for worker in self._workers)

    def _on_message(self, worker: WorkerProcess, message: dict[str, object]) -> None:
        if "beat" in message:
            self._beats[worker.number] = message
            if self._notify is not None:
                self._notify(self._progress())
        else:
            self._parts.add(worker.number, message)

    def _progress(self) -> LoadProgress:
        def total(name: str) -> int:
            return sum(int(str(beat[name])) for beat in self._beats.values())

        return LoadProgress(
            done=total("done"),
            errors=total("errors"),
            total=self._total,
            in_flight=total("flying"),
            elapsed_s=time.monotonic() - self._begun_s,
            completion_tokens=total("tokens"),
            verify_steps=total("steps"),
            warming_up=any(bool(beat["warming"]) for beat in self._beats.values()),
            last_send_s=self._last_send_s,
        )
