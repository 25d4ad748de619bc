"""Prober: asks the server one question at a time, in a thread of its own, so that nothing waits for an answer."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Prober:
    """At most one question in flight: `ask` refuses while one is. Answers go to `deliver`, with their life's number.

    A question that outlives its server's life is answered for that life, and nobody listens any more.
    """

    def __init__(self, deliver: Callable[[int, object], None]) -> None:
        self._deliver = deliver
        self._questions: queue.Queue[tuple[int, Callable[[], object]]] = queue.Queue(maxsize=1)
        self._idle = threading.Event()
        self._idle.set()
        self._thread = threading.Thread(target=self._run, name="prober", daemon=True)
        self._thread.start()

    @property
    def idle(self) -> bool:
        """Whether a question may be asked; the last answer has been delivered by then."""
        return self._idle.is_set()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def ask(self, life: int, question: Callable[[], object]) -> bool:
        """Ask it now, unless the last one is not answered yet."""
        if not self._idle.is_set():
            return False
        self._idle.clear()
        self._questions.put((life, question))
        return True

    def _run(self) -> None:
        while True:
            life, question = self._questions.get()
            try:
                self._deliver(life, question())
            finally:
                self._idle.set()
