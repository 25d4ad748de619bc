"""Reasoning comes in its own field when thinking is on, and not at all when it is off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.generation import require_text
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client

ID = "reasoning"
TITLE = "separates reasoning from the answer"
QUICK = False
_TOKENS = 2048
_MARKS = ("<think>", "</think>", "◁think▷", "◁/think▷")
_ALWAYS_THINKING = ("kimi-k3", "gpt-oss", "deepseek-r1")


def applies(client: Client) -> str | None:
    return None if client.facts.reasoning_parser else "the server has no reasoning parser"


def run(client: Client) -> Passed:
    on = _ask(client, thinking=True)
    if not on.reasoning.strip():
        raise ProofFailed("thinking is on, but no reasoning came in its field", evidence=(on.text[:160],))
    note = f"{len(on.reasoning)} characters of reasoning with thinking on"
    names = " ".join((*client.facts.models, *client.facts.roots)).lower()
    if any(name in names for name in _ALWAYS_THINKING):
        return Passed(note=f"{note}; this model always thinks")
    off = _ask(client, thinking=False)
    if off.reasoning.strip():
        raise ProofFailed("thinking is off, but reasoning came", evidence=(off.reasoning[:160],))
    return Passed(note=f"{note}, none with it off")


def _ask(client: Client, *, thinking: bool) -> Completion:
    """Kimi's templates take `thinking`, others `enable_thinking`; each ignores the other's word."""
    switch = {"thinking": thinking, "enable_thinking": thinking}
    completion = client.chat(problems(1)[0].text, max_tokens=_TOKENS, chat_template_kwargs=switch)
    require_text(completion, f"the answer with thinking {'on' if thinking else 'off'}")
    leaked = [mark for mark in _MARKS if mark in completion.text]
    if leaked:
        raise ProofFailed(f"the answer holds {leaked[0]!r}: the reasoning parser does not fit the model")
    return completion
