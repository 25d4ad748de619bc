"""A streamed chat carries the same text as a whole one, in several events, and ends properly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed
from dflashctl.proofs.generation import require_text, same_text
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client

ID = "stream"
TITLE = "streams the same text"
QUICK = True


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed:
    prompt = problems(1)[0].text
    streamed, whole = client.chat_stream(prompt), client.chat(prompt)
    require_text(streamed, "the stream")
    _require_end(streamed)
    if same_text(streamed, whole):
        return Passed(note=f"{streamed.events} events, the same text")
    if same_text(client.chat_stream(prompt), whole) or not same_text(client.chat(prompt), whole):
        return Passed(note=f"{streamed.events} events; this server does not repeat its own text exactly")
    raise ProofFailed(
        "the streamed text is not the text of the whole reply",
        evidence=(f"streamed: {streamed.whole!r}", f"whole: {whole.whole!r}"),
    )


def _require_end(streamed: Completion) -> None:
    if not streamed.done:
        raise ProofFailed("the stream ended without [DONE]")
    if streamed.events == 1:
        raise ProofFailed("the stream brought everything in one event: something buffers it")
