"""Output does not fall into loops, which look like a high accept length."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.degenerate import find_loop
from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.prompts import Prompt, problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "degenerate"
TITLE = "does not fall into loops"
QUICK = False
_TOKENS = 512
_CODE = Prompt(id="code", text="Write a Python function add_items that sums a list.")


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    prompts = (*problems(3), _CODE)
    for prompt in prompts:
        require_no_loop(prompt.id, client.chat(prompt.text, max_tokens=_TOKENS).whole)
    return Passed(note=f"{len(prompts)} texts without a loop")


def require_no_loop(prompt_id: str, text: str) -> None:
    loop = find_loop(text)
    if loop:
        raise ProofFailed(
            f"prompt {prompt_id} repeats {loop.unit!r} {loop.rounds} times",
            evidence=(text[max(0, loop.start - 40) : loop.start + 120],),
            hint="greedy decoding can loop by itself: ask the same model without speculation, too",
        )
