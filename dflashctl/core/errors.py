"""What can go wrong, each class with its exit code, each instance with the next command."""

from __future__ import annotations

from enum import IntEnum, unique


@unique
class ExitCode(IntEnum):
    """The exit codes that scripts and supervisors rely on (docs/exit-codes.md)."""

    OK = 0
    CHECK_FAILED = 1
    USAGE = 2
    NOT_RUNNING = 3
    GAVE_UP = 4
    UNAVAILABLE = 69
    BUG = 70
    BUSY = 75
    PERMANENT = 78
    INTERRUPTED = 130


class DflashError(Exception):
    """An expected failure: `message` says what and where, `hint` is the next command or a sentence.

    The message is lower case without a full stop and quotes the offending value.
    """

    exit_code = ExitCode.CHECK_FAILED

    def __init__(self, message: str, *, hint: str | None = None, detail: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.detail = detail


class CheckFailed(DflashError):
    """A check said no: smoke, bench below its floor, weights that do not verify."""


class UsageProblem(DflashError):
    """The command line itself cannot be carried out."""

    exit_code = ExitCode.USAGE


class UsageError(UsageProblem):
    """A command line that is not one of ours."""


class NotRunning(DflashError):
    """The instance is not up."""

    exit_code = ExitCode.NOT_RUNNING


class GaveUp(DflashError):
    """The server died or never became ready, and the restart budget is spent."""

    exit_code = ExitCode.GAVE_UP


class Unavailable(DflashError):
    """Something outside does not answer: hub, network, Docker engine."""

    exit_code = ExitCode.UNAVAILABLE


class Busy(DflashError):
    """Another dflashctl owns the instance."""

    exit_code = ExitCode.BUSY


class Permanent(DflashError):
    """A restart will not help: bad profile, unfit machine, taken port, missing engine."""

    exit_code = ExitCode.PERMANENT


class ProfileError(Permanent):
    """A profile that cannot be found, read or accepted."""


class MachineError(Permanent):
    """A machine that cannot carry the plan, or a saved machine that cannot be read."""


class EngineError(Permanent):
    """An engine that is missing, unknown or refuses the plan."""


class StateError(Permanent):
    """A state folder that cannot be used."""


class Interrupted(DflashError):
    """The user pressed Ctrl-C."""

    exit_code = ExitCode.INTERRUPTED
