"""A stop string ends the text right before it, also in the middle of an accepted block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.smoke import Passed, ProofFailed, Skipped
from dflashctl.proofs.prompts import problems

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "stop-strings"
TITLE = "honours stop strings"
QUICK = False
_SHORTEST = 3


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed | Skipped:
    prompt = problems(1)[0].text
    whole = client.chat(prompt).whole
    stop = _word_in_the_middle(whole)
    if stop is None:
        return Skipped(reason="the text is too short to be stopped within")
    stopped = client.chat(prompt, stop=[stop])
    if stop in stopped.whole:
        raise ProofFailed(f"the text holds the stop string {stop!r}", evidence=(stopped.whole,))
    if stopped.whole.strip() == whole[: whole.find(stop)].strip() and stopped.finish_reason == "stop":
        return Passed(note=f"stopped at {stop!r}")
    if client.chat(prompt).whole != whole:
        return Passed(
            note="this server does not repeat its own text exactly; the stop string is not in the text"
        )
    raise ProofFailed(
        f"the text does not end right before the stop string {stop!r} (finish_reason {stopped.finish_reason!r})",
        evidence=(f"stopped: {stopped.whole!r}", f"whole: {whole!r}"),
    )


def _word_in_the_middle(text: str) -> str | None:
    """A word that first occurs within the middle half of the text."""
    span = range(len(text) // 4, 3 * len(text) // 4)
    words = (word for word in text.split() if len(word) >= _SHORTEST)
    return next((word for word in words if text.find(word) in span), None)
