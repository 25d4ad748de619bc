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
_SHOWN = 40


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed | Skipped:
    prompt = problems(1)[0].text
    whole = client.chat(prompt).whole
    stop = _word_within(whole)
    if stop is None:
        return Skipped(reason=f"no word of the text {_excerpt(whole)!r} first occurs within it")
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


def _word_within(text: str) -> str | None:
    """A word that first occurs within the middle half, else (short or looping texts) the one that comes last."""
    words = [word for word in text.split() if len(word) >= _SHORTEST and text.find(word) > 0]
    span = range(len(text) // 4, 3 * len(text) // 4)
    return next((word for word in words if text.find(word) in span), max(words, key=text.find, default=None))


def _excerpt(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
