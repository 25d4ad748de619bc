"""How busy a server says it is: running and queued requests from /v1/loads or /metrics."""

from __future__ import annotations

from dflashctl.core.json_text import json_loads
from dflashctl.core.replies import integer, mapping, values

_GAUGES = ("sglang:num_running_reqs", "sglang:num_queue_reqs")


def running_requests(path: str, body: bytes) -> int | None:
    """Running plus waiting requests over all ranks, None when the body does not tell."""
    return _from_loads(body) if path == "/v1/loads" else _from_metrics(body.decode(errors="replace"))


def _from_loads(body: bytes) -> int | None:
    try:
        loads = values(mapping(json_loads(body)).get("loads"))
    except ValueError:
        return None
    counts = [
        integer(mapping(load).get(key)) for load in loads for key in ("num_running_reqs", "num_waiting_reqs")
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _from_metrics(text: str) -> int | None:
    """Every tensor-parallel rank shows the same gauge, so the largest of each name counts."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name, _, rest = line.partition("{") if "{" in line else line.partition(" ")
        if name in _GAUGES:
            found[name] = max(found.get(name, 0.0), float(rest.rpartition(" ")[2]))
    return int(sum(found.values())) if _GAUGES[0] in found else None
