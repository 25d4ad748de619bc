"""Greedy generations with the best alternatives of each token, where the server tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.lossless import Generation
from dflashctl.core.replies import parse_chat
from dflashctl.core.smoke import ProofFailed
from dflashctl.proofs.client import answered

if TYPE_CHECKING:
    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client
    from dflashctl.proofs.prompts import Prompt

_TOLD = 20  # the most that may be asked for: a model out of its depth has many near ties at once
_ALTERNATIVES = {"logprobs": True, "top_logprobs": _TOLD}
_REFUSED = range(400, 500)
_ABORTED = "abort"  # how releases before 0.5.18 end a request whose options DFLASH does not take


def greedy(client: Client, prompt: Prompt, **options: object) -> Generation:
    """One greedy text, as it is compared for losslessness."""
    return as_generation(greedy_completion(client, prompt, **options))


def as_generation(completion: Completion) -> Generation:
    return Generation(text=completion.whole, tokens=completion.tokens)


def greedy_completion(client: Client, prompt: Prompt, **options: object) -> Completion:
    """One greedy reply; engines that refuse log probabilities with speculation are asked without them."""
    asked = {**_own_options(prompt), **options}
    reply = client.chat_reply(prompt.text, **_ALTERNATIVES, **asked)
    if reply.status not in _REFUSED:
        completion = parse_chat(answered(reply, f"prompt {prompt.id}"))
        if completion.finish_reason != _ABORTED:
            return completion
    return parse_chat(answered(client.chat_reply(prompt.text, **asked), f"prompt {prompt.id}"))


def _own_options(prompt: Prompt) -> dict[str, object]:
    """Kimi's templates take `thinking`, others `enable_thinking`; each ignores the other's word."""
    options: dict[str, object] = {"max_tokens": prompt.max_tokens} if prompt.max_tokens else {}
    if prompt.thinking is not None:
        options["chat_template_kwargs"] = {"thinking": prompt.thinking, "enable_thinking": prompt.thinking}
    return options


def same_text(one: Completion, other: Completion) -> bool:
    """Equal but for blanks at the ends, which parsers trim differently in streams and whole replies."""
    return (one.reasoning.strip(), one.text.strip()) == (other.reasoning.strip(), other.text.strip())


def require_text(completion: Completion, what: str) -> None:
    """ProofFailed unless something was generated and the generation ended by itself or by its limit."""
    if not completion.whole.strip() and not completion.tool_calls:
        raise ProofFailed(f"{what} came back empty (finish_reason {completion.finish_reason!r})")
    if completion.finish_reason not in {"stop", "length", "tool_calls"}:
        raise ProofFailed(f"{what} ended with finish_reason {completion.finish_reason!r}")
