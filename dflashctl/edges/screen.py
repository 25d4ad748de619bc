"""Screen: hands lines and progress to whoever shows them, and drops them when that one is slow or gone."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_QUEUE_ITEMS = 1000


class Screen:
    """Calls made from one thread of its own; `dropped` counts what never reached a sink.

    A sink that raises OSError or ValueError (a closed terminal) is not called again.
    """

    def __init__(self) -> None:
        self._items: queue.Queue[Callable[[], None] | None] = queue.Queue(maxsize=_QUEUE_ITEMS)
        self._thread: threading.Thread | None = None
        self._off = False
        self.dropped = 0

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="screen", daemon=True)
        self._thread.start()

    def post(self, call: Callable[[], None]) -> None:
        """Call it soon, or never."""
        if self._off:
            return
        try:
            self._items.put_nowait(call)
        except queue.Full:
            self.dropped += 1

    def switch_off(self) -> None:
        """Nothing is shown from here on: the terminal is gone."""
        self._off = True

    def close(self, timeout_s: float = 0.5) -> bool:
        """Show what is waiting; False when the sink is stuck in a write that nobody reads."""
        if self._thread is None:
            return True
        try:
            self._items.put_nowait(None)
        except queue.Full:
            self._off = True
        self._thread.join(timeout_s)
        stuck = self._thread.is_alive()
        self._off = True
        return not stuck

    def _run(self) -> None:
        while (call := self._items.get()) is not None:
            if self._off:
                continue
            try:
                call()
            except (OSError, ValueError):
                self._off = True
