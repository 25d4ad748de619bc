"""The target: a Qwen3 causal language model in NumPy, with a KV cache for each sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dflashctl.reference.layers import Rotary, Span, Stack, load_layer, rms_norm
from dflashctl.reference.matrix import Matrix
from dflashctl.reference.weights import take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.reference.config import ModelConfig
    from dflashctl.reference.layers import Positions, Tokens
    from dflashctl.reference.weights import Array, Tensors


@dataclass(frozen=True, kw_only=True)
class Target:
    """The model whose text counts."""

    stack: Stack
    embedding: Array  # [vocabulary, H]
    norm: Array  # [H]
    head: Matrix  # H to vocabulary

    def forward(
        self, tokens: Tokens, positions: Positions, spans: Sequence[Span], feature_layers: Sequence[int]
    ) -> tuple[Array, Array]:
        """Run ``tokens`` [T] at ``positions`` [T] and leave their keys and values in the spans' caches.

        Returns the last layer's output [T, H] and the outputs of ``feature_layers`` side by side
        [T, len(feature_layers) * H], which is what a DFlash drafter conditions on.
        """
        for span in spans:
            span.cache.reserve(span.cache.length + span.end - span.begin)
        x, turns = self.embedding[tokens], self.stack.rotary.at(positions)
        outputs: dict[int, Array] = {}
        for index in range(len(self.stack.layers)):
            x = self.stack.run(index, x, turns, spans, None)
            if index in feature_layers:
                outputs[index] = x
        features = [outputs[index] for index in feature_layers] or [x[:, :0]]
        return x, np.concatenate(features, axis=1)

    def logits(self, hidden: Array) -> Array:
        """Return the logits [rows, vocabulary] of last-layer outputs [rows, H]."""
        return self.head(rms_norm(hidden, self.norm, self.stack.config.norm_eps))


def load_target(config: ModelConfig, tensors: Tensors, positions: int) -> Target:
    """Build the target from its checkpoint, able to stand at ``positions`` positions."""
    shape = (config.vocab_size, config.hidden_size)
    embedding = take(tensors, "model.embed_tokens.weight", shape)
    head = embedding if config.tied_embeddings else take(tensors, "lm_head.weight", shape)
    layers = tuple(load_layer(tensors, f"model.layers.{index}.", config) for index in range(config.layers))
    return Target(
        stack=Stack(config=config, layers=layers, rotary=Rotary(config, positions), causal=True),
        embedding=embedding,
        norm=take(tensors, "model.norm.weight", (config.hidden_size,)),
        head=Matrix(head),
    )
