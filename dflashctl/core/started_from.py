"""What an instance was started from, so that a later look can tell whether its plan would be another one now."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from dflashctl.core.decode import DecodeError, decode
from dflashctl.core.options import PlanRequest  # noqa: TC001 - read at run time by decode
from dflashctl.core.report import to_json

FILE = "started_from.json"


@dataclass(frozen=True, kw_only=True)
class StartedFrom:
    """`digest` is that of the profile's text at the start; `profile_path` is absolute."""

    request: PlanRequest
    profile_path: str
    digest: str
    fingerprint: str


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def dump(started: StartedFrom) -> str:
    return json.dumps(to_json(started))


def parse(text: str) -> StartedFrom | None:
    """None for text of another form: then nothing is said about drift."""
    try:
        return decode(StartedFrom, json.loads(text))
    except (DecodeError, ValueError):
        return None
