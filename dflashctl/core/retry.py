"""Retry: whether a failed request is worth another try, and how long to wait before it."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - part of the signature, cheap
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

ATTEMPTS = 8
LONGEST_WAIT_S = 900.0
_BACKOFF_START_S = 1.0
_BACKOFF_LIMIT_S = 60.0
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524})


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """A failed attempt: `number` counts from 1, `status` None when no answer came."""

    number: int
    status: int | None = None
    asked_wait_s: float | None = None


def retried(status: int) -> bool:
    """True for answers that the next try may better: throttled, overloaded, broken gateway."""
    return status in _RETRIED


def wait_before_next_s(attempt: Attempt, *, attempts: int = ATTEMPTS) -> float | None:
    """Seconds to wait before the next try, None when there should be none.

    The server's own waiting time wins, plus one second since such times are rounded down.
    """
    if attempt.number >= attempts or (attempt.status is not None and not retried(attempt.status)):
        return None
    if attempt.asked_wait_s is not None:
        return None if attempt.asked_wait_s > LONGEST_WAIT_S else attempt.asked_wait_s + 1.0
    return min(_BACKOFF_LIMIT_S, _BACKOFF_START_S * 2.0 ** (attempt.number - 1))


def asked_wait_s(headers: Mapping[str, str], now_wall_s: float) -> float | None:
    """The waiting time that an answer asks for: `Retry-After` (seconds or a date) or `RateLimit` with `r=0;t=N`."""
    lowered = {name.lower(): value for name, value in headers.items()}
    retry_after = lowered.get("retry-after")
    if retry_after is not None:
        return _seconds_or_date(retry_after.strip(), now_wall_s)
    parts = dict(
        piece.strip().split("=", 1)
        for piece in lowered.get("ratelimit", "").split(";")
        if piece.count("=") == 1
    )
    if parts.get("r") == "0" and parts.get("t", "").isdigit():
        return float(parts["t"])
    return None


def _seconds_or_date(value: str, now_wall_s: float) -> float | None:
    if value.isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now_wall_s)
    except (TypeError, ValueError):
        return None
