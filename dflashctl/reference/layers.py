"""The Qwen3 decoder layer that target and draft share: RMSNorm, attention with q/k norm and RoPE, SwiGLU.

Shapes: T rows (tokens of all sequences, one after another), H hidden, N query heads, G key/value heads,
D head width, I intermediate, S visible positions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dflashctl.reference.matrix import Matrix
from dflashctl.reference.weights import take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from dflashctl.reference.cache import KeyValueCache
    from dflashctl.reference.config import ModelConfig
    from dflashctl.reference.weights import Array, Tensors

    Turns = NDArray[np.complex64]
    Positions = NDArray[np.int64]
    Tokens = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Layer:
    """The weights of one layer."""

    input_norm: Array  # [H]
    qkv: Matrix  # H to (N + 2 G) D
    key_value: Matrix  # H to 2 G D: the same without the queries
    qk_norm: (
        Array  # [N + G, D]: q_norm for each query head (with the score's scale), k_norm for each key head
    )
    out: Matrix  # N D to H
    post_norm: Array  # [H]
    gate_up: Matrix  # H to 2 I
    down: Matrix  # I to H


@dataclass(frozen=True, kw_only=True)
class Span:
    """The rows begin..end of a batch, which belong to one sequence and continue its cache."""

    cache: KeyValueCache
    begin: int
    end: int


class Rotary:
    """RoPE as complex rotation: the turn of every position, [positions, 1, D / 2].

    It needs head dimensions in the order of ``paired``, where the two numbers that rotate together are
    neighbours. Scores don't change when queries and keys are reordered alike.
    """

    def __init__(self, config: ModelConfig, positions: int) -> None:
        half = np.arange(0, config.head_dim, 2, dtype=np.float64) / config.head_dim
        angle = np.arange(positions)[:, None, None] / config.rope_theta**half
        self._turns: Turns = np.exp(1j * angle).astype(np.complex64)

    def at(self, positions: Positions) -> Turns:
        """Return the turns of ``positions`` [T]: [T, 1, D / 2]."""
        turns: Turns = self._turns[positions]
        return turns


def turn(x: Array, turns: Turns) -> Array:
    """Rotate ``x`` [T, heads, D] by ``turns`` [T, 1, D / 2]."""
    return (x.view(np.complex64) * turns).view(np.float32)


def paired(weight: Array, heads: int) -> Array:
    """Reorder rows [heads * D, ...] of a query or key weight from (first half, second half) to pairs."""
    halves = weight.reshape(heads, 2, -1, *weight.shape[1:])
    pairs: Array = halves.swapaxes(1, 2).reshape(weight.shape)
    return pairs


def load_layer(tensors: Tensors, prefix: str, config: ModelConfig) -> Layer:
    """Collect the tensors below ``prefix``, joining those that are multiplied with the same input."""
    hidden, inner, width = config.hidden_size, config.intermediate_size, config.head_dim
    rows, kv_rows = config.heads * width, config.kv_heads * width

    def weight(name: str, out: int, into: int) -> Array:
        return take(tensors, f"{prefix}{name}.weight", (out, into))

    def vector(name: str, size: int) -> Array:
        return take(tensors, f"{prefix}{name}.weight", (size,))

    query = paired(weight("self_attn.q_proj", rows, hidden), config.heads)
    key = paired(weight("self_attn.k_proj", kv_rows, hidden), config.kv_heads)
    value = weight("self_attn.v_proj", kv_rows, hidden)
    gated = ("mlp.gate_proj", inner), ("mlp.up_proj", inner)
    query_norm = paired(vector("self_attn.q_norm", width), 1) / np.float32(width**0.5)
    key_norm = paired(vector("self_attn.k_norm", width), 1)
    return Layer(
        input_norm=vector("input_layernorm", hidden),
        qkv=Matrix(np.concatenate([query, key, value])),
        key_value=Matrix(np.concatenate([key, value])),
        qk_norm=np.stack([query_norm] * config.heads + [key_norm] * config.kv_heads),
        out=Matrix(weight("self_attn.o_proj", hidden, rows)),
        post_norm=vector("post_attention_layernorm", hidden),
        gate_up=Matrix(np.concatenate([weight(name, size, hidden) for name, size in gated])),
        down=Matrix(weight("mlp.down_proj", hidden, inner)),
    )


def rms_norm(x: Array, weight: Array, eps: float) -> Array:
    """Scale the last axis of ``x`` to a root mean square of 1, then by ``weight``."""
    mean_square = np.einsum("...i,...i->...", x, x)[..., None] / np.float32(x.shape[-1])
    normed: Array = x * (1 / np.sqrt(mean_square + np.float32(eps))) * weight
    return normed


def swiglu(x: Array, layer: Layer) -> Array:
    """Return down(silu(gate(x)) * up(x)); [T, H] to [T, H]."""
    joined = layer.gate_up(x)
    half = joined.shape[1] // 2
    gate, up = joined[:, :half], joined[:, half:]
    return layer.down(gate / (1 + np.exp(-gate)) * up)


def attend(queries: Array, keys: Array, values: Array, *, causal: bool) -> Array:
    """Return softmax(q k) v for scaled ``queries`` [n, N, D] over ``keys`` and ``values`` [G, S, D]: [n, N D].

    With ``causal`` the last n visible positions are those of the queries themselves, and none looks ahead.
    """
    count, heads, width = queries.shape
    groups, visible = keys.shape[:2]
    share = heads // groups
    stacked = queries.reshape(count, groups, share, width).transpose(1, 2, 0, 3)
    scores: Array = stacked.reshape(groups, share * count, width) @ keys.transpose(0, 2, 1)
    if causal and count > 1:
        scores.reshape(groups, share, count, visible)[..., visible - count :] += _ahead(count)
    scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    total: Array = np.add.reduce(scores, axis=-1, keepdims=True)
    mixed: Array = (scores @ values) / total
    mixed = mixed.reshape(groups, share, count, width).transpose(2, 0, 1, 3)
    return mixed.reshape(count, heads * width)


@lru_cache(maxsize=64)
def _ahead(count: int) -> Array:
    """Return the mask [count, count] that hides from each query the positions after its own."""
    mask: Array = np.triu(np.full((count, count), -np.inf, np.float32), 1)
    return mask


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Layers that run one after another over a batch of spans."""

    config: ModelConfig
    layers: tuple[Layer, ...]
    rotary: Rotary
    causal: bool

    def run(self, index: int, x: Array, turns: Turns, spans: Sequence[Span], window: int | None) -> Array:
        """Run layer ``index`` over ``x`` [T, H]; write each span's keys and values into its cache.

        ``window`` limits how many cached positions before the span are seen; None sees them all.
        """
        layer, config = self.layers[index], self.config
        queries, keys, values = self._project(layer, x, turns)
        mixed = np.empty((len(x), config.heads * config.head_dim), np.float32)
        for span in spans:
            rows, start = slice(span.begin, span.end), span.cache.length
            span.cache.write(index, start, keys[rows], values[rows])
            first = 0 if window is None else max(0, start - window)
            seen = span.cache.view(index, first, start + span.end - span.begin)
            mixed[rows] = attend(queries[rows], *seen, causal=self.causal)
        x = x + layer.out(mixed)
        return x + swiglu(rms_norm(x, layer.post_norm, config.norm_eps), layer)

    def _project(self, layer: Layer, x: Array, turns: Turns) -> tuple[Array, Array, Array]:
        heads, groups, width = self.config.heads, self.config.kv_heads, self.config.head_dim
        joined = layer.qkv(rms_norm(x, layer.input_norm, self.config.norm_eps))
        parts = joined.reshape(len(x), heads + 2 * groups, width)
        normed = rms_norm(parts[:, : heads + groups], layer.qk_norm, self.config.norm_eps)
        turned = turn(normed, turns)
        return turned[:, :heads], turned[:, heads:], parts[:, heads + groups :]
