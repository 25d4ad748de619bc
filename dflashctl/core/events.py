"""Events: what can happen to a supervised server, and what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.instance import LastExit, Reason
    from dflashctl.core.start_phase import StartPhase


class Action(str, Enum):
    """What the resident loop carries out; every action's result comes back as an event.

    TERMINATE goes to the main process only, KILL to every member of its sessions. CLEAN_UP kills what the main
    process left behind, waits for the end of the log, and answers with Ended.
    """

    SPAWN = "spawn"
    TERMINATE = "terminate"
    ABORT_REQUESTS = "abort_requests"
    DUMP_STACKS = "dump_stacks"
    KILL = "kill"
    CLEAN_UP = "clean_up"
    CANARY = "canary"
    FINISH = "finish"


@dataclass(frozen=True, kw_only=True)
class Begin:
    """The supervisor is ready to start the server."""


@dataclass(frozen=True, kw_only=True)
class Spawned:
    """The server's program runs."""


@dataclass(frozen=True, kw_only=True)
class SpawnFailed:
    """The server's program cannot be started: at all, or (not `permanent`) for want of something that may come back."""

    reason: Reason
    permanent: bool = True


@dataclass(frozen=True, kw_only=True)
class Progressed:
    """The start moves: a phase, a count, a new line, bytes read, a compiler at work."""

    step: StartPhase | None = None
    done: int | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class PortTaken:
    """Somebody else listens on the server's port."""

    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Proved:
    """The right model generated tokens, with speculation where planned."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """The server answers, but it is not the one that was planned."""

    reason: Reason


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """A number that changes whenever tokens come, and whether requests are in work; None is unknown."""

    activity: float | None
    working: bool | None


@dataclass(frozen=True, kw_only=True)
class TokensSeen:
    """The log tells of a batch that was computed."""


@dataclass(frozen=True, kw_only=True)
class CanaryDone:
    """One short completion ended."""

    ok: bool


@dataclass(frozen=True, kw_only=True)
class StopRequested:
    """Somebody wants it stopped; `interrupt` is Ctrl-C."""

    reason: Reason
    interrupt: bool = False


@dataclass(frozen=True, kw_only=True)
class Exited:
    """The main process has ended."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Nothing of the server is left; `permanent` says that starting it again cannot help."""

    last_exit: LastExit
    reason: Reason
    permanent: bool = False


@dataclass(frozen=True, kw_only=True)
class Slept:
    """The supervisor itself stood still for that long: nobody's limits ran on."""

    seconds: float


@dataclass(frozen=True, kw_only=True)
class Tick:
    """Time has passed."""


Event = (
    Begin
    | Spawned
    | SpawnFailed
    | Progressed
    | PortTaken
    | Proved
    | Refused
    | Metrics
    | TokensSeen
    | CanaryDone
    | StopRequested
    | Exited
    | Ended
    | Slept
    | Tick
)
