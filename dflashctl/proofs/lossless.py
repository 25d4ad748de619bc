"""Speculation does not change greedy text, beyond the engine's own noise and near ties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.lossless import Lossless, PromptVerdict, Verdict, judge
from dflashctl.core.smoke import Passed, ProofFailed, Skipped
from dflashctl.proofs.generation import greedy
from dflashctl.proofs.prompts import losslessness_prompts

if TYPE_CHECKING:
    from dflashctl.core.lossless import Divergence
    from dflashctl.proofs.client import Client
    from dflashctl.proofs.prompts import Prompt

ID = "lossless"
TITLE = "gives the same text as without speculation"
QUICK = True
_RUNS = 2  # the same setting twice shows the noise
_BRIEF = 4
_CONFIDENT = (
    "confident divergences are faults of the verify step: report them with engine release and backends"
)
_UNTOLD = "no log-probabilities were told, so a near tie cannot be told from a fault: judge by the texts"


def applies(client: Client) -> str | None:
    if client.facts.speculates is False:
        return "the server does not speculate"
    if client.reference is None:
        return "needs texts without speculation: --against-no-spec, --against URL or --reference FILE"
    return None


def run(client: Client) -> Passed | Skipped:
    prompts = losslessness_prompts(reasoning=client.facts.reasoning_parser is not None)
    if client.brief:
        prompts = prompts[:_BRIEF]
    found = [verdict for prompt in prompts if (verdict := _judge(client, prompt))]
    if not found:
        return Skipped(reason="the reference knows none of the prompts")
    result = Lossless(prompts=tuple(found))
    if result.faults:
        worst = result.faults[0]
        raise ProofFailed(
            f"{len(result.faults)} of {len(found)} texts differ from those of {_label(client)}, "
            f"first prompt {worst.prompt_id} at character {worst.divergence.at_character if worst.divergence else 0}",
            evidence=tuple(line for fault in result.faults for line in evidence(fault)),
            hint=_CONFIDENT if result.count(Verdict.FAULT) else _UNTOLD,
        )
    return Passed(note=_summary(client, result), evidence=tuple(_excuses(result)))


def _judge(client: Client, prompt: Prompt) -> PromptVerdict | None:
    reference = client.reference.generations(prompt) if client.reference else ()
    if not reference:
        return None
    speculative = tuple(greedy(client, prompt) for _ in range(1 if client.brief else _RUNS))
    return judge(prompt.id, speculative, reference, client.expected.near_tie_nats)


def _summary(client: Client, result: Lossless) -> str:
    excused = result.count(Verdict.NEAR_TIE) + result.count(Verdict.NOISE)
    rest = f", {excused} excused as near ties or noise" if excused else ""
    noise = "" if client.brief else f"; noise floor {result.noise_floor:.0%}"
    return f"{result.count(Verdict.EQUAL)} of {len(result.prompts)} texts equal{rest}{noise}; against {_label(client)}"


def _label(client: Client) -> str:
    return client.reference.label if client.reference else "?"


def _excuses(result: Lossless) -> list[str]:
    return [line for found in result.prompts if found.divergence for line in evidence(found)]


def evidence(found: PromptVerdict) -> tuple[str, ...]:
    """The divergence of one prompt in words: where, how sure the reference was, and both continuations."""
    divergence = found.divergence
    if divergence is None:
        return ()
    where = f"character {divergence.at_character}"
    if divergence.token_index is not None:
        where += f", token {divergence.token_index}"
    return (
        f"{found.prompt_id}: {found.verdict.value} at {where}, {_odds(divergence)}"
        + (", differs from itself too" if found.noisy else ""),
        f"  with speculation:    {divergence.with_speculation!r}",
        f"  without speculation: {divergence.without_speculation!r}",
    )


def _odds(divergence: Divergence) -> str:
    if divergence.margin_nats is None:
        return "margin unknown"
    margin = f"margin {divergence.margin_nats:.3f} nats"
    if divergence.behind_nats is None:
        return f"{margin}, with speculation none of the tokens down to {divergence.told_nats or 0.0:.3f} below the best"
    return f"{margin}, with speculation a token {divergence.behind_nats:.3f} below the best"
