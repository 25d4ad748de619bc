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
    """Where two texts part, and what the reference thought of it, in log-probabilities at that token.

    `margin_nats` is best - second; `behind_nats` best - the other text's token, None when that is none of the
    alternatives told, which go down to best - `told_nats`. Where the other text ended, `behind_nats` is the margin.
    """

    at_character: int
    token_index: int | None
    margin_nats: float | None
    behind_nats: float | None
    told_nats: float | None
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
    odds = _odds(speculative, reference, index)
    return Divergence(
        at_character=at,
        token_index=index,
        margin_nats=odds.margin_nats,
        behind_nats=odds.behind_nats,
        told_nats=odds.told_nats,
        with_speculation=_excerpt(speculative.text, at),
        without_speculation=_excerpt(reference.text, at),
    )


def _verdict(divergence: Divergence | None, near_tie_nats: float, *, noisy: bool) -> Verdict:
    """Known odds decide: a confident divergence is a fault even on an engine that is noisy."""
    if divergence is None:
        return Verdict.EQUAL
    if divergence.behind_nats is not None:
        return Verdict.NEAR_TIE if divergence.behind_nats <= near_tie_nats else Verdict.FAULT
    if divergence.told_nats is not None and divergence.told_nats > near_tie_nats:
        return Verdict.FAULT  # less likely than all that were told
    return Verdict.NOISE if noisy else Verdict.UNEXPLAINED


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


@dataclass(frozen=True, kw_only=True)
class _Odds:
    margin_nats: float | None = None
    behind_nats: float | None = None
    told_nats: float | None = None


def _odds(speculative: Generation, reference: Generation, index: int | None) -> _Odds:
    """What the reference's alternatives at token `index` say about the other text's token there."""
    if index is None or index >= len(reference.tokens) or len(reference.tokens[index].top) < 2:  # noqa: PLR2004
        return _Odds()
    told = sorted(reference.tokens[index].top, key=lambda choice: -choice[1])
    best = told[0][1]
    margin = best - told[1][1]
    other = _other_token(speculative, reference, index, tuple(token for token, _ in told))
    behind = margin if other == b"" else next((best - p for token, p in told if token == other), None)
    return _Odds(margin_nats=margin, behind_nats=behind, told_nats=best - told[-1][1])


def _other_token(
    speculative: Generation, reference: Generation, index: int, told: tuple[bytes, ...]
) -> bytes | None:
    """The token that the other text has there: None when it is none of `told`, empty when that text has ended."""
    if index < len(speculative.tokens):
        return speculative.tokens[index].token
    start = sum(len(choice.token) for choice in reference.tokens[:index])
    rest = speculative.text.encode()[start:]
    chosen = reference.tokens[index].token  # not taken there, or the texts would not part
    fitting = [token for token in told if token and token != chosen and rest.startswith(token)]
    return max(fitting, key=len, default=None) if rest else b""


def _common_prefix(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(text: str, at: int) -> str:
    return text[at : at + EXCERPT_CHARACTERS]
