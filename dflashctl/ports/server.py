"""Server: a started server as the supervisor handles it, whatever runs it."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dflashctl.core.instance import Identity
    from dflashctl.core.plan import Plan


class StartRefused(Exception):
    """The server's program cannot be started; the message says what and why.

    Not `permanent` is what this host may have again in a moment: memory, descriptors, processes, space on a disk.
    """

    def __init__(self, message: str, *, permanent: bool = True) -> None:
        super().__init__(message)
        self.permanent = permanent


_PASSING = frozenset(
    {
        errno.EAGAIN,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EINTR,
        errno.EIO,
    }
)


def is_passing(error: OSError) -> bool:
    """Whether the same call may succeed in a moment."""
    return error.errno in _PASSING


class ServerHandle(Protocol):
    """A server between its start and its end.

    `exit_descriptor` becomes readable when the main process has ended, `log_descriptor` is its output.
    """

    @property
    def identity(self) -> Identity | None: ...

    @property
    def container(self) -> str | None: ...

    @property
    def log_descriptor(self) -> int: ...

    @property
    def exit_descriptor(self) -> int: ...

    def go(self) -> None:
        """Let the prepared server run, once it is written down; StartRefused when it cannot."""

    def poll(self) -> int | None:
        """The wait status as subprocess gives it (negative for a signal), None while it runs."""

    def sessions(self) -> tuple[Identity, ...]:
        """Every session that members of its tree are in, its own first."""

    def terminate(self) -> None:
        """Ask the main process, and only it, to end."""

    def kill(self) -> None:
        """Kill every process of it that can be found now."""

    def leftovers(self) -> tuple[int, ...]:
        """The pids that live yet."""

    def foreign_listener(self, port: int) -> str | None:
        """Who listens on that port without being part of this server; None when nobody does."""

    def listens(self, port: int) -> bool:
        """Whether this server listens on that port."""

    def activity(self) -> int:
        """A number that changes while it reads files or compiles, whatever it logs."""

    def oom_kills(self) -> int | None:
        """How often the kernel killed for memory in its control group since its start; None is unknown."""

    def close(self) -> None:
        """Give descriptors back, after its end."""


class Launcher(Protocol):
    def prepare(self, plan: Plan, env: Mapping[str, str], folder: Path) -> ServerHandle:
        """The server, held back until `go`; `folder` is for its short-lived files. StartRefused as `go`."""
