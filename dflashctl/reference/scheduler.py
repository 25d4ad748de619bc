"""The engine's thread: one batched step after another over all running requests, so that all move on together."""

from __future__ import annotations

import threading
import time
import traceback
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.reference.decode import Decoder, Yield
    from dflashctl.reference.log import Log
    from dflashctl.reference.request import Update
    from dflashctl.reference.sequence import Sequence
    from dflashctl.reference.statistics import Statistics

ABORTED = "Abort request."


class Scheduler:
    """Runs up to ``limit`` requests at once and queues the others, first come first served.

    ``deliver`` is called from the engine's thread with what each step produced; ``crashed`` when the thread
    has died of an exception, which is a bug and ends the server.
    """

    def __init__(self, decoder: Decoder, statistics: Statistics, log: Log, limit: int) -> None:
        self.steps = 0  # a heartbeat: it grows while requests run
        self._decoder, self._statistics, self._log, self._limit = decoder, statistics, log, limit
        self._waiting: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._changed = threading.Condition()
        self._stopping = False
        self._thread: threading.Thread | None = None

    def start(self, deliver: Callable[[list[Update]], None], crashed: Callable[[], None]) -> None:
        """Start the thread."""
        self._thread = threading.Thread(
            target=self._main, args=(deliver, crashed), name="scheduler", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the step that it is in."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def submit(self, sequence: Sequence) -> None:
        """Queue a request; a probe goes first and needs no free place."""
        with self._changed:
            if sequence.request.probe:
                self._waiting.appendleft(sequence)
            else:
                self._waiting.append(sequence)
            self._changed.notify()

    def abort(self, rid: str | None) -> None:
        """End the request ``rid``, or all of them for None, before its next step."""
        with self._changed:
            for sequence in (*self._waiting, *self._running):
                if rid is None or sequence.rid == rid:
                    sequence.abort_reason = ABORTED
            self._changed.notify()

    def in_flight(self) -> list[str]:
        """Return the names of the requests that wait or run."""
        with self._changed:
            return [item.rid for item in (*self._waiting, *self._running) if not item.request.probe]

    def _main(self, deliver: Callable[[list[Update]], None], crashed: Callable[[], None]) -> None:
        try:
            while self._await_work():
                deliver(self._turn())
        except Exception:  # noqa: BLE001 - the thread's top frame: without it the server would hang in silence
            self._log.fail(f"Scheduler hit an exception: {traceback.format_exc()}")
            crashed()

    def _await_work(self) -> bool:
        with self._changed:
            while not (self._waiting or self._running or self._stopping):
                self._statistics.idle()
                self._changed.wait()
            return not self._stopping

    def _turn(self) -> list[Update]:
        updates, decoded = self._drop_aborted(), False
        admitted = self._admit()
        if admitted:
            self._log.say(self._prefill_line(admitted))
        if self._running:
            found = self._decoder.step(self._running)
            decoded = any(item.sequence.output_ids for item in found)
            updates += [self._apply(item) for item in found]
            self.steps += 1
        with self._changed:
            self._running = [sequence for sequence in self._running if sequence.finish is None]
            self._count()
        line = self._statistics.decode_step() if decoded else None
        if line:
            self._log.say(line)
        return updates

    def _drop_aborted(self) -> list[Update]:
        with self._changed:
            dropped = [item for item in (*self._waiting, *self._running) if item.abort_reason is not None]
            self._waiting = deque(item for item in self._waiting if item.abort_reason is None)
            self._running = [item for item in self._running if item.abort_reason is None]
        updates = [sequence.abort(sequence.abort_reason or ABORTED) for sequence in dropped]
        for sequence in dropped:
            self._finish(sequence)
        return updates

    def _admit(self) -> list[Sequence]:
        admitted = []
        with self._changed:
            while self._waiting and (len(self._running) < self._limit or self._waiting[0].request.probe):
                sequence = self._waiting.popleft()
                sequence.times.started = time.time()
                self._running.append(sequence)
                admitted.append(sequence)
            self._count()
        return admitted

    def _apply(self, found: Yield) -> Update:
        sequence = found.sequence
        before, known = sequence.times.last_token, len(sequence.output_ids)
        update = sequence.add(found.tokens, found.logprobs)
        if sequence.request.probe:
            return update
        self._statistics.count_tokens(len(update.token_ids))
        if known and before is not None:
            self._statistics.count_gap(time.time() - before, len(update.token_ids))
        if found.drafted:
            self._statistics.count_verify(found.drafted, len(found.tokens) - 1)
        if update.finish:
            self._finish(sequence)
        return update

    def _finish(self, sequence: Sequence) -> None:
        if not sequence.request.probe:
            self._statistics.count_finished(sequence)

    def _count(self) -> None:
        self._statistics.running = sum(not item.request.probe for item in self._running)
        self._statistics.queued = len(self._waiting)
        self._statistics.tokens_in_use = sum(item.cache.length for item in self._running)

    def _prefill_line(self, admitted: list[Sequence]) -> str:
        tokens = sum(len(sequence.request.prompt_ids) for sequence in admitted)
        return (
            f"Prefill batch, #new-seq: {len(admitted)}, #new-token: {tokens}, #cached-token: 0, "
            f"token usage: {self._statistics.token_usage:.2f}, "
            f"#running-req: {len(self._running) - len(admitted)}, #queue-req: {len(self._waiting)}, "
            "#pending-token: 0, cuda graph: False"
        )
