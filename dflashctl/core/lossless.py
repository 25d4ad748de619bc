"""Losslessness: does greedy text with speculation equal the text without, beyond noise and near ties."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.replies import TokenChoice

# Two steps of bfloat16 for logits between 16 and 32: what another kernel may honestly move a difference by.
NEAR_TIE_NATS = 0.25
EXCERPT_CHARACTERS = 80


class Verdict(str, Enum):
    """`UNEXPLAINED` differs where neither the margin nor the noise floor can be known: it counts as a fault."""

    EQUAL = "equal"
    NEAR_TIE = "near_tie"
    NOISE = "noise"
    UNEXPLAINED = "unexplained"
    FAULT = "fault"


EXCUSED = frozenset({Verdict.EQUAL, Verdict.NEAR_TIE, Verdict.NOISE})


@dataclass(frozen=True, kw_only=True)
class Generation:
    """One greedy text; `tokens` carry the best alternatives where the server tells them."""

    text: str
    tokens: tuple[TokenChoice, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Divergence:
    """Where two texts part: `margin_nats` is log p(best) - log p(second) of the reference at that token.

    `second_best` says whether the other text went on with the reference's second choice.
    """

    at_character: int
    token_index: int | None
    margin_nats: float | None
    second_best: bool | None
    with_speculation: str
    without_speculation: str


@dataclass(frozen=True, kw_only=True)
class PromptVerdict:
    """`noisy`: the same setting did not give the same text twice for this prompt."""

    prompt_id: str
    verdict: Verdict
    noisy: bool
    divergence: Divergence | None = None


@dataclass(frozen=True, kw_only=True)
class Lossless:
    """All prompts of one comparison; `noise_floor` is the share of prompts that differ from themselves."""

    prompts: tuple[PromptVerdict, ...]

    @property
    def noise_floor(self) -> float:
        return sum(p.noisy for p in self.prompts) / len(self.prompts) if self.prompts else 0.0

    @property
    def faults(self) -> tuple[PromptVerdict, ...]:
        return tuple(p for p in self.prompts if p.verdict not in EXCUSED)

    def count(self, verdict: Verdict) -> int:
        return sum(p.verdict is verdict for p in self.prompts)


def judge(
    prompt_id: str,
    speculative: tuple[Generation, ...],
    reference: tuple[Generation, ...],
    near_tie_nats: float = NEAR_TIE_NATS,
) -> PromptVerdict:
    """Compare the first generation of each side; further ones of a side only measure its noise."""
    noisy = any(len({g.text for g in side}) > 1 for side in (speculative, reference))
    divergence = first_divergence(speculative[0], reference[0])
    return PromptVerdict(
        prompt_id=prompt_id,
        verdict=_verdict(divergence, near_tie_nats, noisy=noisy),
        noisy=noisy,
        divergence=divergence,
    )


def first_divergence(speculative: Generation, reference: Generation) -> Divergence | None:
    """The first place where the texts part, None when they are equal."""
    if speculative.text == reference.text:
        return None
    at = _common_prefix(speculative.text, reference.text)
    index = _token_index(speculative, reference, at)
    margin, second = _margin(speculative, reference, index)
    return Divergence(
        at_character=at,
        token_index=index,
        margin_nats=margin,
        second_best=second,
        with_speculation=_excerpt(speculative.text, at),
        without_speculation=_excerpt(reference.text, at),
    )


def _verdict(divergence: Divergence | None, near_tie_nats: float, *, noisy: bool) -> Verdict:
    """A known margin decides: a confident divergence is a fault even on an engine that is noisy."""
    if divergence is None:
        return Verdict.EQUAL
    if divergence.margin_nats is None:
        return Verdict.NOISE if noisy else Verdict.UNEXPLAINED
    near = divergence.margin_nats <= near_tie_nats and divergence.second_best is not False
    return Verdict.NEAR_TIE if near else Verdict.FAULT


def _token_index(speculative: Generation, reference: Generation, at: int) -> int | None:
    """The index of the reference's token at which the two part, None when it cannot be known."""
    if speculative.tokens and reference.tokens:
        pairs = zip(speculative.tokens, reference.tokens, strict=False)
        return next((i for i, (one, other) in enumerate(pairs) if one.token != other.token), None)
    offset = len(reference.text[:at].encode())
    end = 0
    for index, choice in enumerate(reference.tokens):
        if not reference.text.encode().startswith(choice.token, end):
            return index if end >= len(reference.text.encode()) else None
        end += len(choice.token)
        if end > offset:
            return index
    return None


def _margin(
    speculative: Generation, reference: Generation, index: int | None
) -> tuple[float | None, bool | None]:
    """(log p(best) - log p(second), whether speculation took the second) at the reference's token `index`."""
    if index is None or index >= len(reference.tokens) or len(reference.tokens[index].top) < 2:  # noqa: PLR2004
        return None, None
    (_, best), (runner_up, second) = reference.tokens[index].top[:2]
    return best - second, _continues_with(speculative, reference, index, runner_up)


def _continues_with(speculative: Generation, reference: Generation, index: int, token: bytes) -> bool | None:
    if index < len(speculative.tokens):
        return speculative.tokens[index].token == token
    start = sum(len(choice.token) for choice in reference.tokens[:index])
    rest = speculative.text.encode()[start:]
    return rest.startswith(token) if rest and token else None


def _common_prefix(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(text: str, at: int) -> str:
    return text[at : at + EXCERPT_CHARACTERS]
