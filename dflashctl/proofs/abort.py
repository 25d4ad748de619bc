"""A client that goes away in mid-stream frees its slot, and the server goes on."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed, Skipped
from dflashctl.proofs.client import closing_stream
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "abort"
TITLE = "frees the slot of a stream that was cut"
QUICK = False
_LONG = 16_384
_ROOM = 512
_EVENTS = 3
_LIMIT_S = 15.0


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed | Skipped:
    before = client.running()
    if before is None:
        return Skipped(reason="the server does not say how many requests it runs")
    limit = client.facts.max_model_len
    tokens = min(_LONG, limit - _ROOM) if limit else _LONG
    with closing_stream(
        client.open_stream(problems(1)[0].text, max_tokens=tokens, ignore_eos=True)
    ) as events:
        seen = len(list(islice(events, _EVENTS)))
        if seen < _EVENTS:
            return Skipped(reason=f"the answer ended after {seen} events, before it could be cut")
        if not client.wait_until(lambda: (client.running() or 0) > before, _LIMIT_S):
            return Skipped(
                reason=f"the server counted {before} running requests before and with the open stream alike"
            )
        during = client.running()
    started = client.clock.monotonic()
    if not client.wait_until(lambda: (client.running() or 0) <= before, _LIMIT_S):
        raise ProofFailed(f"{_LIMIT_S:.0f} s after the client went away its request still runs")
    freed_s = client.clock.monotonic() - started
    client.chat(problems(1)[0].text, max_tokens=8)
    return Passed(
        note=f"running requests: {before}, {during} with the stream, {before} after {freed_s:.1f} s"
    )
