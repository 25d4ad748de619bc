"""Speculation is really on: each request's accept length, from the engine's own counts, is above 1 and possible."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed, Skipped
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client

ID = "speculation"
TITLE = "really speculates"
QUICK = True
_REQUESTS = 4


def applies(client: Client) -> str | None:
    if client.facts.speculates is False and client.expected.speculation is not True:
        return "the server was started without speculation"
    return None


def run(client: Client) -> Passed | Skipped:
    if client.facts.speculates is False:
        raise ProofFailed(
            "the plan asks for speculation, but the server says that it has no algorithm for it"
        )
    wanted, block = client.expected.block_size, client.facts.block_size
    if wanted and block and wanted != block:
        raise ProofFailed(f"the plan asks for block size {wanted}, the server runs {block}")
    counted = [completion for completion in _ask(client) if completion.spec]
    if counted:
        mean = require_sane(counted, block or wanted)
        size = f", block {block}" if block else ""
        return Passed(note=f"accept length {mean:.2f} over {len(counted)} requests{size}")
    if client.facts.speculates or client.expected.speculation:
        raise ProofFailed("no reply carries the engine's counts of speculation: it does not speculate")
    return Skipped(reason="the server tells neither its settings nor counts of speculation")


def _ask(client: Client) -> list[Completion]:
    prompts = problems(_REQUESTS)
    chats = [client.chat(prompt.text) for prompt in prompts]
    if any(chat.spec for chat in chats) or not client.facts.described:
        return chats
    return [client.generate(prompt.text) for prompt in prompts]


def require_sane(completions: Sequence[Completion], block_size: int | None) -> float:
    """The mean accept length; ProofFailed when no draft was ever accepted or a length is impossible.

    One token of each request comes from the prefill, so a request of n verify steps has at most
    1 + n x block tokens, and n + 1 when every draft is rejected.
    """
    for completion in completions:
        tokens, steps = (
            completion.completion_tokens or 0,
            completion.spec.verify_steps if completion.spec else 0,
        )
        if steps <= 0:
            raise ProofFailed(f"{tokens} tokens were made in {steps} verify steps")
        if block_size and tokens > 1 + steps * block_size:
            raise ProofFailed(
                f"an accept length of {tokens / steps:.2f} ({tokens} tokens in {steps} verify steps) "
                f"is impossible with block size {block_size}"
            )
    if all(_nothing_accepted(completion) for completion in completions):
        raise ProofFailed(
            "accept length is 1.00: every draft token was rejected, so speculation only costs time",
            hint="compare draft and target (revision, chat template, KV dtype), then try without CUDA graphs",
        )
    return fmean(length for completion in completions if (length := completion.accept_length) is not None)


def _nothing_accepted(completion: Completion) -> bool:
    if completion.spec is None or completion.completion_tokens is None:
        return False
    return completion.completion_tokens <= 1 + completion.spec.verify_steps
