"""Usage adds up, keeps to max_tokens, and is the same in streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client

ID = "usage"
TITLE = "counts its tokens"
QUICK = True
_LIMIT = 7  # less than a block, so that an engine that commits whole blocks shows itself


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    prompt = problems(1)[0].text
    whole = client.chat(prompt, max_tokens=_LIMIT)
    streamed = client.chat_stream(prompt, max_tokens=_LIMIT)
    for what, completion in (("a whole reply", whole), ("a stream", streamed)):
        _require_counts(what, completion)
    if whole.prompt_tokens != streamed.prompt_tokens:
        raise ProofFailed(f"the same prompt counts {whole.prompt_tokens} and {streamed.prompt_tokens} tokens")
    return Passed(
        note=f"{whole.prompt_tokens} + {whole.completion_tokens} = {whole.total_tokens}, in streams too"
    )


def _require_counts(what: str, completion: Completion) -> None:
    prompt, made, total = completion.prompt_tokens, completion.completion_tokens, completion.total_tokens
    if prompt is None or made is None or total is None:
        raise ProofFailed(f"{what} has no usage")
    if prompt <= 0 or made <= 0:
        raise ProofFailed(f"{what} counts {prompt} prompt and {made} completion tokens")
    if total != prompt + made:
        raise ProofFailed(f"{what} counts {prompt} + {made} tokens, but {total} in total")
    if made > _LIMIT:
        raise ProofFailed(f"{what} has {made} tokens where max_tokens was {_LIMIT}")
    if completion.finish_reason == "length" and made != _LIMIT:
        raise ProofFailed(f"{what} ended for length after {made} tokens where max_tokens was {_LIMIT}")
