"""A chat request is answered with text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed
from dflashctl.proofs.generation import require_text
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "chat"
TITLE = "answers a chat request"
QUICK = True


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    completion = client.chat(problems(1)[0].text)
    require_text(completion, "the answer")
    return Passed(note=f"{completion.completion_tokens} tokens, finish_reason {completion.finish_reason}")
