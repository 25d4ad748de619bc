"""The server lists the model that it was started for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "models"
TITLE = "lists the right model"
QUICK = True


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    facts, wanted = client.facts, client.expected.model
    if not facts.models:
        raise ProofFailed(facts.no_model)
    if wanted and wanted not in (*facts.models, *facts.roots):
        raise ProofFailed(f"serves {', '.join(facts.models)!r}, not {wanted!r}")
    context = f", context {facts.max_model_len} tokens" if facts.max_model_len else ""
    return Passed(note=f"{facts.models[0]}{context}")
