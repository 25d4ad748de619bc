"""The connections of a load process: opened ahead, kept alive, replaced when they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.bench.poller import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable

    from dflashctl.bench.flight import Link
    from dflashctl.bench.plan import Target
    from dflashctl.bench.poller import Poller
    from dflashctl.bench.pulse import Pulse


class Dock:
    """`links` by descriptor, `idle` the ready ones without a request, `opening` the number not ready yet."""

    def __init__(
        self, target: Target, poller: Poller, pulse: Pulse, failed: Callable[[OSError], None]
    ) -> None:
        """`failed` hears of each connection that could not be made."""
        self._target = target
        self._poller = poller
        self._pulse = pulse
        self._failed = failed
        self.links: dict[int, Link] = {}
        self.idle: list[Link] = []
        self.opening = 0

    def open(self) -> None:
        """Start one more connection."""
        try:
            link = self._target.link()
        except OSError as problem:
            self._failed(problem)
            return
        self.links[link.fd] = link
        self.opening += 1
        self._poller.add(link.fd, WRITE)

    def advance(self, link: Link) -> None:
        """Go on opening a connection on which something happened."""
        try:
            writes = link.advance()
        except OSError as problem:
            self.drop(link)
            self._failed(problem)
            return
        self._poller.change(link.fd, WRITE if writes else READ)
        if link.ready:
            self.opening -= 1
            self._pulse.connect_s.append(link.connect_s or 0.0)
            self.idle.append(link)

    def drop(self, link: Link) -> None:
        """Close a connection in any state."""
        self._poller.remove(link.fd)
        del self.links[link.fd]
        if not link.ready:
            self.opening -= 1
        elif link in self.idle:
            self.idle.remove(link)
        link.close()

    def expire(self, now: float) -> None:
        """Give up connections that do not come about."""
        limit = self._target.connect_timeout_s
        late = [k for k in self.links.values() if not k.ready and now - k.opened_s > limit]
        for link in late:
            self.drop(link)
            self._failed(TimeoutError(f"no connection within {limit:g} s"))

    def close(self) -> None:
        for link in tuple(self.links.values()):
            self.drop(link)
