"""Signals: the supervisor's own, turned into a list that its loop reads; never handled in place."""

from __future__ import annotations

import atexit
import os
import signal
import threading
import time
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError, ExitCode, Interrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from typing_extensions import Self

    _Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None

_ENDS_US = (signal.SIG_DFL, signal.default_int_handler)
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_ONE_STOP_S = 0.25  # `timeout` signals the process, then its group: one stop, two signals
_SUSPENDS = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


class StoppedEarly(DflashError):
    """TERM came before the server was started: an orderly stop."""

    exit_code = ExitCode.OK


class Signals:
    """Pending signal numbers, and a descriptor that becomes readable with each; a context manager.

    A hang-up is nothing to us when we are detached, or when whoever started us ignores it (nohup). A suspended supervisor could not supervise, so Ctrl-Z is only noted.
    """

    def __init__(self, *, detached: bool) -> None:
        self._detached = detached
        self._pending: deque[int] = deque()
        self._old: dict[int, _Handler] = {}
        self._closed = self._stopped = False
        self.descriptor, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def __enter__(self) -> Self:
        for number in (*STOPS, *_SUSPENDS, signal.SIGCHLD):
            nohup = self._detached or signal.getsignal(number) is signal.SIG_IGN
            ignored = nohup and number == signal.SIGHUP
            self._old[number] = signal.signal(number, signal.SIG_IGN if ignored else self._note)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *exc: object) -> None:
        self._closed = True
        signal.set_wakeup_fd(-1)
        if self._stopped:
            _one_stop.is_another(
                time.monotonic()
            )  # what still comes is of the stop that has just been carried out
        _put_back(self._old)
        os.close(self.descriptor)
        os.close(self._writer)

    def wake(self) -> None:
        """Make the descriptor readable, from any thread."""
        if not self._closed:
            with suppress(OSError):
                os.write(self._writer, b"\0")

    def take(self) -> list[int]:
        """The signals since the last call, and an empty descriptor."""
        with suppress(BlockingIOError):
            while os.read(self.descriptor, 4096):
                pass
        taken = []
        while self._pending:
            taken.append(self._pending.popleft())
        return taken

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._stopped = self._stopped or is_stop(number)
        if number != signal.SIGCHLD:
            self._pending.append(number)


def is_stop(number: int) -> bool:
    return number in STOPS


def is_suspend(number: int) -> bool:
    return number in _SUSPENDS


class Stopped(KeyboardInterrupt):
    """A signal that ends a command; no error, so that nobody who handles those of a request takes it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.number = number


class OneStop:
    """Which signals are another stop: what comes within 0.25 s of one belongs to it."""

    def __init__(self) -> None:
        self._last_s = float("-inf")
        self._depth = 0

    def is_another(self, now_s: float) -> bool:
        if now_s - self._last_s < _ONE_STOP_S:
            return False
        self._last_s = now_s
        return True

    def is_recent(self, now_s: float) -> bool:
        return now_s - self._last_s < _ONE_STOP_S

    @contextmanager
    def of_one_command(self) -> Iterator[None]:
        """Nested, so that a signal that ends an inner part is no other one for the outer."""
        if not self._depth:
            self._last_s = float("-inf")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


_one_stop = OneStop()


@contextmanager
def stop_raises() -> Iterator[None]:
    """While a command prepares a start, a stop is a KeyboardInterrupt within, and to the outside an error.

    TERM and HUP are StoppedEarly, Ctrl-C is Interrupted. PID 1 has no default for signals, so without this a
    container could not be stopped while it fetches.
    """
    try:
        with stops_interrupt():
            yield
    except Stopped as stop:
        kind = Interrupted if stop.number == signal.SIGINT else StoppedEarly
        raise kind(f"stopped by {stop.name} before the server was started") from None


@contextmanager
def stops_interrupt() -> Iterator[None]:
    """TERM and HUP end a command as Ctrl-C does, so that its servers are stopped and results kept.

    Each stop raises Stopped once; a signal that is ignored, such as HUP under nohup, stays so.
    """

    def _raise(number: int, _frame: FrameType | None) -> None:
        if _one_stop.is_another(time.monotonic()):
            raise Stopped(number)

    meant = [n for n in STOPS if signal.getsignal(n) is not signal.SIG_IGN]
    with _one_stop.of_one_command(), _handled(meant, _raise):
        yield


@contextmanager
def undisturbed() -> Iterator[None]:
    """While something must be put in order, such as the stop of a server of our own, no signal cuts it short."""
    with _handled(STOPS, lambda _number, _frame: None):
        yield


@contextmanager
def stops_wait() -> Iterator[None]:
    """A stop that comes within is raised at its end: what is begun within is known by then."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is ever interrupted
        return
    came: list[int] = []
    meant = [n for n in STOPS if signal.getsignal(n) is not signal.SIG_IGN]
    with _handled(meant, lambda number, _frame: came.append(number)):
        yield
    for number in came[:1]:
        signal.raise_signal(number)


@contextmanager
def _handled(
    numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]
) -> Iterator[None]:
    old = {int(number): signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        _put_back(old)


def _put_back(old: dict[int, _Handler]) -> None:
    """The handlers from before; but right after a stop its other signal must not end us while we still say how it went."""
    just_stopped = _one_stop.is_recent(time.monotonic())
    for number, before in old.items():
        ends_us = before in _ENDS_US and number in STOPS
        signal.signal(number, _unless_of_the_last_stop(before) if just_stopped and ends_us else before)
    if just_stopped:
        atexit.register(_deaf)


def _unless_of_the_last_stop(before: _Handler) -> _Handler:
    def _handle(number: int, _frame: FrameType | None) -> None:
        if _one_stop.is_another(time.monotonic()):
            signal.signal(number, before)
            signal.raise_signal(number)

    return _handle


def _deaf() -> None:
    """The report is out and the exit code stands; the interpreter's end would bring the default handlers back."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
