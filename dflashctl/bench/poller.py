"""Waiting for sockets with microsecond deadlines: epoll, elsewhere the standard selectors."""

from __future__ import annotations

import select
import sys
from typing import Protocol

READ = 1  # the values of EPOLLIN and EPOLLOUT
WRITE = 4
_FINEST_S = 0.001  # epoll's own resolution
_SELECT_LIMIT = 1024


class Poller(Protocol):
    """Descriptors and what is awaited of each."""

    def add(self, descriptor: int, events: int, /) -> None: ...

    def change(self, descriptor: int, events: int, /) -> None: ...

    def remove(self, descriptor: int, /) -> None: ...

    def poll(self, seconds: float, /) -> list[tuple[int, int]]:
        """What is ready within `seconds`, as (descriptor, READ | WRITE | more)."""

    def close(self) -> None: ...


if sys.platform == "linux":

    class EpollPoller:
        """epoll, whose timeout has whole milliseconds only; a shorter wait is spent in select on its descriptor."""

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self.add = self._epoll.register
            self.change = self._epoll.modify
            self.remove = self._epoll.unregister
            self._poll = self._epoll.poll

        def poll(self, seconds: float, /) -> list[tuple[int, int]]:
            if seconds > _FINEST_S:
                return self._poll(int(seconds * 1000) / 1000)
            if seconds > 0 and self._epoll.fileno() < _SELECT_LIMIT:
                select.select((self._epoll,), (), (), seconds)
            return self._poll(0)

        def close(self) -> None:
            self._epoll.close()


class SelectorPoller:
    """The same over `selectors`, for systems without epoll."""

    def __init__(self) -> None:
        import selectors

        self._selector = selectors.DefaultSelector()

    def add(self, descriptor: int, events: int, /) -> None:
        self._selector.register(descriptor, self._translate(events))

    def change(self, descriptor: int, events: int, /) -> None:
        self._selector.modify(descriptor, self._translate(events))

    def remove(self, descriptor: int, /) -> None:
        self._selector.unregister(descriptor)

    def poll(self, seconds: float, /) -> list[tuple[int, int]]:
        found = self._selector.select(max(0.0, seconds))
        return [(key.fd, (READ if mask & 1 else 0) | (WRITE if mask & 2 else 0)) for key, mask in found]

    def close(self) -> None:
        self._selector.close()

    @staticmethod
    def _translate(events: int) -> int:
        return (1 if events & READ else 0) | (2 if events & WRITE else 0)


def make_poller() -> Poller:
    """The best one of this system."""
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()
