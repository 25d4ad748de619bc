"""Waiting for sockets with microsecond deadlines: epoll, elsewhere the standard selectors."""

from __future__ import annotations

import select

READ = 1
WRITE = 4  # select.EPOLLIN and EPOLLOUT have these values on Linux


class EpollPoller:
    """epoll, whose timeout has whole milliseconds only; the rest of a wait is spent in select on its descriptor."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self.add = self._epoll.register
        self.change = self._epoll.modify
        self.remove = self._epoll.unregister
        self.ready_now = self._poll_now
        self._poll = self._epoll.poll

    def _poll_now(self) -> list[tuple[int, int]]:
        return self._poll(0)

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """What is ready within `seconds`, as (descriptor, READ | WRITE | more)."""
        if seconds > 0.001:
            return self._poll(int(seconds * 1000) / 1000)
        if seconds > 0 and self._epoll.fileno() < 1024:  # select's own limit
            select.select((self._epoll,), (), (), seconds)
        return self._poll(0)

    def close(self) -> None:
        self._epoll.close()


class SelectorPoller:
    """The same over `selectors`, for systems without epoll."""

    def __init__(self) -> None:
        import selectors

        self._selector = selectors.DefaultSelector()

    def add(self, descriptor: int, events: int) -> None:
        self._selector.register(descriptor, self._translate(events))

    def change(self, descriptor: int, events: int) -> None:
        self._selector.modify(descriptor, self._translate(events))

    def remove(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)

    def ready_now(self) -> list[tuple[int, int]]:
        return self.wait(0)

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        found = self._selector.select(max(0.0, seconds))
        return [(key.fd, (READ if mask & 1 else 0) | (WRITE if mask & 2 else 0)) for key, mask in found]

    def close(self) -> None:
        self._selector.close()

    @staticmethod
    def _translate(events: int) -> int:
        return (1 if events & READ else 0) | (2 if events & WRITE else 0)


def make_poller() -> EpollPoller | SelectorPoller:
    """The best one of this system."""
    return EpollPoller() if hasattr(select, "epoll") else SelectorPoller()
