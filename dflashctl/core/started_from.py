"""What an instance was started from, so that a later look can tell whether its plan would be another one now.

`status` reads it every second somewhere: only what it compares is parsed here, and the request only when it must be.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.json_text import json_loads
from dflashctl.core.report import Json, to_json

if TYPE_CHECKING:
    from dflashctl.core.options import PlanRequest

FILE = "started_from.json"


@dataclass(frozen=True, kw_only=True)
class StartedFrom:
    """`digest` is that of the profile's text at the start; `profile_path` is absolute; `request` is still JSON."""

    request: Json
    profile_path: str
    digest: str
    fingerprint: str


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def dump(started: StartedFrom) -> str:
    return json.dumps(to_json(started))


def parse(text: str) -> StartedFrom | None:
    """None for text of another form: then nothing is said about drift."""
    try:
        found = json_loads(text)
        return StartedFrom(
            request=found["request"],
            profile_path=str(found["profile_path"]),
            digest=str(found["digest"]),
            fingerprint=str(found["fingerprint"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def request_of(started: StartedFrom) -> PlanRequest:
    """The request as it was made, for the same profile file; DecodeError for one of another form."""
    from dataclasses import replace

    from dflashctl.core.decode import decode
    from dflashctl.core.options import PlanRequest

    return replace(decode(PlanRequest, started.request), profile=started.profile_path)
