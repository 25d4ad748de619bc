"""Report: what a command returns, and its JSON envelope."""

from __future__ import annotations

import dataclasses
from array import array
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError, ExitCode

if TYPE_CHECKING:
    from dflashctl.core.findings import Finding

SCHEMA_VERSION = 1
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Outcome(str, Enum):
    OK = "ok"
    PARTIAL = "partial"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True)
class ErrorInfo:
    """An error as scripts see it; `exit_code` names its class."""

    message: str
    hint: str | None = None
    detail: str | None = None
    exit_code: int = int(ExitCode.CHECK_FAILED)

    @classmethod
    def of(cls, error: DflashError) -> ErrorInfo:
        return cls(
            message=error.message, hint=error.hint, detail=error.detail, exit_code=int(error.exit_code)
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answer of a command: `data` is one dataclass (or None), rendered by `ui` and nobody else.

    `mute` says that nobody reads our output any more, so that writing it would wait for ever. `bugs` are what went
    wrong in us while the command went on: the boundary makes crash reports and exit code 70 of them.
    """

    command: str
    data: object | None = None
    outcome: Outcome = Outcome.OK
    exit_code: int = ExitCode.OK
    findings: tuple[Finding, ...] = ()
    errors: tuple[ErrorInfo, ...] = ()
    next_steps: tuple[str, ...] = ()
    mute: bool = False
    bugs: tuple[Exception, ...] = ()


def failure(command: str, error: DflashError, *, data: object | None = None) -> Report:
    """The report of a command that ended with `error`."""
    steps = (error.hint,) if error.hint and error.hint.startswith("dflashctl ") else ()
    return Report(
        command=command,
        data=data,
        outcome=Outcome.OK if error.exit_code is ExitCode.OK else Outcome.FAILED,
        exit_code=error.exit_code,
        errors=() if error.exit_code is ExitCode.OK else (ErrorInfo.of(error),),
        next_steps=steps,
    )


def to_json(value: object) -> Json:
    """Plain JSON values from dataclasses, enums, tuples, arrays and mappings; a `to_json` method wins."""
    own = getattr(value, "to_json", None)
    if own is not None and not isinstance(value, type):
        return to_json(own())
    if isinstance(value, Enum):
        return to_json(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, frozenset, set, array)):
        return [to_json(item) for item in value]
    return str(value)


def is_utf8(stream: object) -> bool:
    """Whether JSON may go there unescaped; a stream without an encoding keeps text as it is."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return str(encoding).lower().replace("_", "-") in {"utf-8", "utf8"}


def envelope(report: Report) -> Json:
    """The one JSON object that every command prints with --json."""
    return {
        "schema_version": SCHEMA_VERSION,
        "command": report.command,
        "outcome": report.outcome.value,
        "exit_code": int(report.exit_code),
        "data": to_json(report.data) if report.data is not None else {},
        "findings": to_json(report.findings),
        "errors": to_json(report.errors),
        "next_steps": list(report.next_steps),
    }
