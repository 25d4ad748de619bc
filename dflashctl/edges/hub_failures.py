"""Failures of huggingface_hub and its transports in plain words, and which of them another try may better."""

from __future__ import annotations

import errno
import time
from typing import TYPE_CHECKING, Any, TypeVar

from huggingface_hub.errors import (  # type: ignore[attr-defined]
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HTTPError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from dflashctl.core.retry import Attempt, asked_wait_s, wait_before_next_s

if TYPE_CHECKING:
    from collections.abc import Callable

    Say = Callable[..., None]

_Answer = TypeVar("_Answer")
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NO_WRITE = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
_HOPELESS = frozenset(
    {
        "gated",
        "unauthorized",
        "forbidden",
        "no_repo",
        "no_revision",
        "offline",
        "no_room",
        "read_only",
        "not_a_hub",
    }
)


def failures() -> tuple[type[Exception], ...]:
    """All that the library and its transports raise for the outside world's failures."""
    return (HTTPError, OSError, EntryNotFoundError, RuntimeError, ValueError)


def patiently(call: Callable[[], _Answer], say: Say, attempts: int, *, listed: bool = False) -> _Answer:
    """The answer of `call`, tried again after the waiting time that the failure asks for.

    `listed` files exist: not-found is then an overloaded service, not a wrong name.
    """
    number = 0
    while True:
        number += 1
        try:
            return call()
        except failures() as error:
            told = describe(error)
            hopeless = told["kind"] in _HOPELESS or (told["kind"] == "no_file" and not listed)
            wait = None if hopeless else wait_before_next_s(_attempt(number, told), attempts=attempts)
            if wait is None:
                raise
            say("waiting", seconds=wait, status=told["status"], message=told["message"])
            time.sleep(wait)


def describe(error: Exception) -> dict[str, Any]:
    """`kind`, `status`, `wait` and `message` of a failure, from its type and codes alone."""
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        return describe(error.__cause__)
    response = getattr(error, "response", None)
    status = response.status_code if isinstance(error, HfHubHTTPError) and response is not None else None
    wait = (
        asked_wait_s(response.headers, time.time()) if status is not None and response is not None else None
    )
    message = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return {"kind": _kind(error, status), "status": status, "wait": wait, "message": message[:500]}


def _kind(error: Exception, status: int | None) -> str:
    by_type: tuple[tuple[type[Exception], str], ...] = (
        (OfflineModeIsEnabled, "offline"),
        (GatedRepoError, "gated"),
        (RevisionNotFoundError, "no_revision"),
        (RepositoryNotFoundError, "unauthorized" if status == 401 else "no_repo"),  # noqa: PLR2004
        (LocalEntryNotFoundError, "network"),
        (EntryNotFoundError, "no_file"),
        (FileMetadataError, "not_a_hub"),
    )
    for kind_of_error, name in by_type:
        if isinstance(error, kind_of_error):
            return name
    if status is not None:
        return {401: "unauthorized", 403: "forbidden"}.get(status, "status")
    return _kind_of_other(error)


def _kind_of_other(error: Exception) -> str:
    if isinstance(error, HTTPError):
        return "network"
    if isinstance(error, OSError):
        if error.errno in _NO_ROOM:
            return "no_room"
        if error.errno in _NO_WRITE:
            return "read_only"
        return "network"
    return "bad_answer"


def _attempt(number: int, told: dict[str, Any]) -> Attempt:
    status = None if told["kind"] == "no_file" else told["status"]
    return Attempt(number=number, status=status, asked_wait_s=told["wait"])
