"""The same long prompt gives the same text cold and from the prefix cache."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.lossless import EXCUSED, Verdict, judge
from dflashctl.core.smoke import Passed, ProofFailed, Skipped
from dflashctl.proofs.generation import as_generation, greedy_completion, require_text
from dflashctl.proofs.prompts import Prompt, long_prompt, names_answer

if TYPE_CHECKING:
    from dflashctl.core.replies import Completion
    from dflashctl.proofs.client import Client

ID = "prefix-cache"
TITLE = "repeats a long prompt from its cache"
QUICK = False
_WORDS = 2000
_TOKENS_PER_WORD = 3  # at most, for the prompt to stay within half of a small context
_TOKENS = 128


def applies(_client: Client) -> str | None:
    return None


def run(client: Client) -> Passed | Skipped:
    limit = client.facts.max_model_len
    words = min(_WORDS, limit // (2 * _TOKENS_PER_WORD)) if limit else _WORDS
    prompt = long_prompt(client.nonce, words)
    cold, warm, third = (greedy_completion(client, prompt, max_tokens=_TOKENS) for _ in range(3))
    for name, completion in (("cold", cold), ("warm", warm)):
        require_text(completion, f"the {name} answer")
    same = cold.whole == warm.whole
    note = "the same text cold and warm" if same else _excuse(prompt, cold, warm, third)
    if warm.cached_tokens == 0:
        return Skipped(reason=f"no prefix hit on the repeat (cached_tokens 0): {note}")
    return Passed(note=f"{note}, {_hit(warm)}")


def _excuse(prompt: Prompt, cold: Completion, warm: Completion, third: Completion) -> str:
    """Unequal texts: excused by a near tie, by noise, or by a warm answer that is right all the same."""
    found = judge(prompt.id, (as_generation(warm), as_generation(third)), (as_generation(cold),))
    right_cold, right_warm = (names_answer(one.whole, prompt.answer) for one in (cold, warm))
    spoilt = right_cold and not right_warm
    if found.verdict in EXCUSED and not spoilt:
        return f"texts differ ({found.verdict.value})"
    if right_warm and found.verdict is Verdict.UNEXPLAINED:
        return "texts differ, both give the right answer"
    hit = warm.cached_tokens != 0
    repeat = "from the cache" if hit else "on the repeat, without a prefix hit"
    raise ProofFailed(
        f"the answer is right cold and wrong {repeat}"
        if spoilt
        else f"the texts cold and {repeat} differ confidently",
        evidence=(f"cold: {cold.whole!r}", f"repeated: {warm.whole!r}"),
        hint="try --disable-radix-cache after --, and a newer engine release"
        if hit
        else "try a newer engine release",
    )


def _hit(warm: Completion) -> str:
    if warm.cached_tokens is None:
        return "hits not told"
    return f"{warm.cached_tokens} of {warm.prompt_tokens} prompt tokens from the cache"
