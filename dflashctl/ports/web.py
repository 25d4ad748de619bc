"""Web: small HTTP requests to a server (probes, smoke), bounded in time and size, never following redirects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, kw_only=True)
class Reply:
    """`status` 0 means that no answer came; `problem` then says why. `elapsed_s` is the whole call."""

    status: int
    body: bytes = b""
    problem: str | None = None
    elapsed_s: float = 0.0


@dataclass(frozen=True, kw_only=True)
class StreamEvent:
    """One `data:` payload of a server-sent stream, at `at_s` seconds after the request was sent."""

    data: str
    at_s: float


class Web(Protocol):
    def request(
        self,
        method: str,
        url: str,
        *,
        body: object | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 10.0,
    ) -> Reply:
        """One request; `body` is sent as JSON. Never raises for a network failure: see Reply.problem."""

    def stream(
        self,
        url: str,
        *,
        body: object,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60.0,
    ) -> Iterator[StreamEvent]:
        """POST and yield the stream's events; raises Unavailable when it breaks or the status is not 200."""
