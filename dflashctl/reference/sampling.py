"""Choose tokens from the target's logits, so that speculation never changes what is drawn.

DFlash proposes one token t for a position. The lossless rule accepts t with the target's probability p(t) and
otherwise draws from p without t, renormalised. Drawing x from p and accepting when x equals t is that rule:
P(x = t) = p(t), and given x != t, x has the probability p(x) / (1 - p(t)). So verification draws the target's
own token at each position and keeps going while the drafts agree with it. The random number of a position
depends on the request's seed and that position alone, therefore the same seed gives the same text at any block
size, and without speculation too. (Rounding: float32 sums depend on how many rows are computed together, so a
draw within about 1e-6 of a boundary, or a tie as close as that, may fall either way.)
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dflashctl.reference.request import SamplingParams
    from dflashctl.reference.weights import Array

GREEDY_BELOW = 1e-6  # SGLang treats a lower temperature as greedy


def verify(logits: Array, drafts: np.ndarray, params: SamplingParams, position: int) -> list[int]:
    """Return the tokens that a verified block yields: agreed drafts, then the target's own next token.

    ``logits`` [b, vocabulary] are the target's after the newest token and after each of ``drafts`` [b - 1];
    the first row decides the token at output position ``position``. With no drafts this is plain decoding.
    """
    if params.temperature < GREEDY_BELOW:
        choices: list[int] = logits.argmax(axis=-1).tolist()
        wrong = np.flatnonzero(drafts != choices[:-1])
        return choices[: wrong[0] + 1] if len(wrong) else choices
    tokens: list[int] = []
    for row, scores in enumerate(logits):
        token = draw(distribution(scores, params), uniform(params.seed, position + row))
        tokens.append(token)
        if row == len(drafts) or token != drafts[row]:
            break
    return tokens


def distribution(logits: Array, params: SamplingParams) -> NDArray[np.float64]:
    """Return the probabilities [vocabulary] to sample from: temperature, then top-k, top-p and min-p.

    The three filters look at the unfiltered probabilities, as SGLang's PyTorch sampler does; top-p keeps a
    token when the tokens before it sum to at most top_p.
    """
    scaled = logits.astype(np.float64) / params.temperature
    probs: NDArray[np.float64] = np.exp(scaled - scaled.max())
    probs /= probs.sum()
    if params.top_k <= 0 and params.top_p >= 1 and params.min_p <= 0:
        return probs
    order = np.argsort(-probs, kind="stable")
    ranked = probs[order]
    keep = np.cumsum(ranked) - ranked <= params.top_p
    keep &= ranked >= params.min_p * ranked[0]
    if params.top_k > 0:
        keep[params.top_k :] = False
    probs[order[~keep]] = 0
    kept: NDArray[np.float64] = probs / probs.sum()
    return kept


def draw(probs: NDArray[np.float64], chance: float) -> int:
    """Return the token at which the cumulative probability first exceeds ``chance`` (0 <= chance < 1)."""
    cumulative = np.cumsum(probs)
    return int(np.searchsorted(cumulative, chance * cumulative[-1], side="right"))


def uniform(seed: int, position: int) -> float:
    """Return the random number in [0, 1) of a request's seed and an output position."""
    key = struct.pack("<QQ", seed & 0xFFFF_FFFF_FFFF_FFFF, position)
    bits = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")
    return (bits >> 11) / (1 << 53)


def log_softmax(logits: Array) -> NDArray[np.float64]:
    """Return the natural logarithms of the target's probabilities at temperature 1 [..., vocabulary]."""
    exact = logits.astype(np.float64)
    exact -= exact.max(axis=-1, keepdims=True)
    logs: NDArray[np.float64] = exact - np.log(np.exp(exact).sum(axis=-1, keepdims=True))
    return logs
