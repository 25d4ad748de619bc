"""A prompt longer than the context is refused cleanly, and the server goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.client import quote
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "context-overflow"
TITLE = "refuses a prompt beyond its context"
QUICK = True
_WORDS = ("apple", "seven", "river", "green", "stone", "eight")
_REFUSAL = range(400, 500)


def applies(client: Client) -> str | None:
    return None if client.facts.max_model_len else "the server does not say how long its context is"


def run(client: Client) -> Passed:
    limit = client.facts.max_model_len or 0
    words = " ".join(_WORDS[index % len(_WORDS)] for index in range(limit + 16))  # a word is at least a token
    reply = client.chat_reply(words, max_tokens=8)
    if reply.status == 200:  # noqa: PLR2004
        raise ProofFailed(f"a prompt of more than {limit} tokens was accepted, so it was cut without a word")
    if reply.status not in _REFUSAL:
        raise ProofFailed(
            f"a prompt of more than {limit} tokens got {reply.status or reply.problem}, not a refusal",
            evidence=(quote(reply.body),) if reply.body else (),
        )
    client.chat(problems(1)[0].text, max_tokens=8)
    return Passed(note=f"more than {limit} tokens: status {reply.status}, and the next request was answered")
