"""Sixteen requests at once are all answered, each with its own text, and speculation survives the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.degenerate import require_no_loop
from dflashctl.proofs.generation import require_text
from dflashctl.proofs.prompts import Prompt, names_answer, problems
from dflashctl.proofs.speculation import require_sane

if TYPE_CHECKING:
    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client

ID = "concurrency"
TITLE = "answers 16 requests at once"
QUICK = False
STREAMS = 16
_TOKENS = 128
_LOST = 4  # right answers that a batch may cost before it is called wrong


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    prompts = problems(STREAMS, seed=16)
    alone = [client.chat(prompt.text, max_tokens=_TOKENS) for prompt in prompts]
    together = client.at_once(
        [prompt.text for prompt in prompts], lambda text: client.chat(text, max_tokens=_TOKENS)
    )
    for prompt, completion in zip(prompts, together, strict=True):
        require_text(completion, f"prompt {prompt.id}, one of {STREAMS} at once,")
        require_no_loop(prompt.id, completion.whole)
    _require_own_texts(prompts, alone, together)
    _require_right(prompts, alone, together)
    same = sum(one.whole == other.whole for one, other in zip(alone, together, strict=True))
    return Passed(note=f"{same} of {STREAMS} texts as alone{_speculation(client, alone, together)}")


def _require_own_texts(
    prompts: tuple[Prompt, ...], alone: list[Completion], together: tuple[Completion, ...]
) -> None:
    """No request may get the text that belongs to another one."""
    owners = {completion.whole: prompt.id for prompt, completion in zip(prompts, alone, strict=True)}
    for prompt, own, got in zip(prompts, alone, together, strict=True):
        owner = owners.get(got.whole, prompt.id)
        if got.whole != own.whole and owner != prompt.id:
            raise ProofFailed(f"prompt {prompt.id} got the answer of prompt {owner}", evidence=(got.whole,))


def _require_right(
    prompts: tuple[Prompt, ...], alone: list[Completion], together: tuple[Completion, ...]
) -> None:
    before, after = (
        sum(names_answer(one.whole, prompt.answer) for prompt, one in zip(prompts, side, strict=True))
        for side in (alone, together)
    )
    if after < before - _LOST:
        raise ProofFailed(f"{before} of {STREAMS} answers are right alone, only {after} at once")


def _speculation(client: Client, alone: list[Completion], together: tuple[Completion, ...]) -> str:
    """The accept length at once; ProofFailed when it falls below half of what it is alone."""
    counted = [completion for completion in together if completion.spec]
    before = [completion for completion in alone if completion.spec]
    if not counted or not before:
        return ""
    block = client.facts.block_size
    length, earlier = require_sane(counted, block), require_sane(before, block)
    if length < earlier / 2:
        raise ProofFailed(f"accept length is {earlier:.2f} alone and {length:.2f} with {STREAMS} at once")
    return f", accept length {length:.2f} (alone {earlier:.2f})"
