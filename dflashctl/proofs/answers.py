"""Answers are right: fluent but wrong text, which no status code shows, is caught on sums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.prompts import names_answer, problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "answers"
TITLE = "gets sums right"
QUICK = False
_PROBLEMS = 6
_ENOUGH = 4
_TOKENS = 1024


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    prompts = problems(_PROBLEMS)
    texts = [client.chat(prompt.text, max_tokens=_TOKENS).whole for prompt in prompts]
    wrong = [
        f"{prompt.id}: {prompt.answer} is not in {text[-160:]!r}"
        for prompt, text in zip(prompts, texts, strict=True)
        if not names_answer(text, prompt.answer)
    ]
    right = _PROBLEMS - len(wrong)
    if right < _ENOUGH:
        raise ProofFailed(f"only {right} of {_PROBLEMS} sums are right", evidence=tuple(wrong))
    return Passed(note=f"{right} of {_PROBLEMS} right")
