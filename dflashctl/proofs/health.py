"""The health endpoint says yes, after a generation of its own where the engine does one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed, Skipped

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "health"
TITLE = "says that it is healthy"
QUICK = True
_LIMIT_S = 30.0


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed | Skipped:
    reply = client.get("/health", timeout_s=_LIMIT_S)
    if reply.status == 404:  # noqa: PLR2004
        return Skipped(reason="the server has no /health")
    if reply.status != 200:  # noqa: PLR2004
        raise ProofFailed(f"/health answers {reply.status or reply.problem}")
    return Passed(note=f"200 after {reply.elapsed_s:.2f} s")
