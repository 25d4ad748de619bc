"""Temperature and top_p are honoured; some verify paths quietly fall back to greedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "sampling"
TITLE = "honours temperature and top_p"
QUICK = False
_HOT = 2.0
_NARROW = 0.001  # keeps the single best token
_SEEDS = (11, 12, 13, 14)
_TOKENS = 64


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    prompt = problems(1)[0].text
    hot = {_sampled(client, prompt, 1.0, seed) for seed in _SEEDS}
    if len(hot) == 1:
        raise ProofFailed(
            f"{len(_SEEDS)} requests at temperature {_HOT} gave one and the same text: sampling is not honoured",
            evidence=tuple(hot),
            hint="look for 'falling back to greedy argmax verification' in the server's log",
        )
    greedy = {client.chat(prompt, max_tokens=_TOKENS).whole for _ in range(2)}
    narrow = {_sampled(client, prompt, _NARROW, seed) for seed in _SEEDS}
    if len(narrow) > 1 and len(greedy) == 1:
        raise ProofFailed(
            f"top_p {_NARROW} leaves only the best token, yet {len(_SEEDS)} requests gave {len(narrow)} texts",
            evidence=tuple(sorted(narrow)[:2]),
        )
    return Passed(
        note=f"{len(hot)} of {len(_SEEDS)} texts differ at temperature {_HOT}, {_note(narrow, greedy)}"
    )


def _sampled(client: Client, prompt: str, top_p: float, seed: int) -> str:
    return client.chat(prompt, temperature=_HOT, top_p=top_p, seed=seed, max_tokens=_TOKENS).whole


def _note(narrow: set[str], greedy: set[str]) -> str:
    if len(greedy) > 1:
        return "greedy texts differ too, so top_p cannot be judged"
    return f"top_p {_NARROW} gives {'the greedy' if narrow == greedy else 'one'} text"
