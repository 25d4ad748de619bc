"""The DFlash drafter: proposes a whole block in one pass from the target's hidden states.

It sees (a) keys and values made from the target's hidden states for every verified token, and (b) a block
whose first token is the newest one and whose others are the mask token, embedded by the target. Attention
inside the block is bidirectional. Source: Chen, Liang, Liu, "DFlash: Block Diffusion for Flash Speculative
Decoding", arXiv 2602.06036.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.reference.errors import StartError
from dflashctl.reference.layers import Rotary, Span, Stack, load_layer, rms_norm, turn
from dflashctl.reference.matrix import Matrix
from dflashctl.reference.weights import take

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.reference.config import DraftConfig
    from dflashctl.reference.layers import Positions, Tokens
    from dflashctl.reference.qwen3 import Target
    from dflashctl.reference.weights import Array, Tensors


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The proposer."""

    config: DraftConfig
    stack: Stack
    fuse: Matrix  # features to H: `fc`, which joins the target's hidden states
    context_norm: Array  # [H]: `hidden_norm`
    norm: Array  # [H]

    def extend(self, features: Array, positions: Positions, spans: Sequence[Span]) -> None:
        """Add verified tokens to the drafter's context.

        ``features`` [T, features] are the target's hidden states of tokens at ``positions`` [T]; each span's
        rows become keys and values of every draft layer and lengthen the span's cache.
        """
        model, eps = self.stack.config, self.stack.config.norm_eps
        turns = self.stack.rotary.at(positions)
        context = rms_norm(self.fuse(features), self.context_norm, eps)
        for span in spans:
            span.cache.reserve(span.cache.length + span.end - span.begin)
        for index, layer in enumerate(self.stack.layers):
            parts = layer.key_value(context).reshape(len(context), -1, model.head_dim)
            keys = rms_norm(parts[:, : model.kv_heads], layer.qk_norm[model.heads :], eps)
            keys, values = turn(keys, turns), parts[:, model.kv_heads :]
            for span in spans:
                rows = slice(span.begin, span.end)
                span.cache.write(index, span.cache.length, keys[rows], values[rows])
        for span in spans:
            span.cache.length += span.end - span.begin

    def propose(
        self, target: Target, tokens: Tokens, positions: Positions, spans: Sequence[Span], window: int | None
    ) -> Tokens:
        """Fill the blocks in ``tokens`` [T]: newest token, then masks, for each span.

        Returns [T] proposals; the one at block position i >= 1 is for that same position, and the one at
        position 0 means nothing. ``window`` limits the context to its last tokens.
        """
        for span in spans:
            span.cache.reserve(span.cache.length + span.end - span.begin)
        x, turns = target.embedding[tokens], self.stack.rotary.at(positions)
        for index in range(len(self.stack.layers)):
            x = self.stack.run(index, x, turns, spans, window)
        logits = target.head(rms_norm(x, self.norm, self.stack.config.norm_eps))
        proposals: Tokens = logits.argmax(axis=-1)
        return proposals


def load_draft(config: DraftConfig, tensors: Tensors, target: Target, positions: int) -> Draft:
    """Build the drafter, checking that it was made for ``target``."""
    model, aim = config.model, target.stack.config
    if (model.hidden_size, model.vocab_size) != (aim.hidden_size, aim.vocab_size):
        raise StartError(
            f"the draft's hidden size and vocabulary {model.hidden_size, model.vocab_size} are not the "
            f"target's {aim.hidden_size, aim.vocab_size}: it was trained for another target"
        )
    beyond = [layer for layer in config.target_layer_ids if not 0 <= layer < aim.layers]
    if beyond or not config.target_layer_ids:
        raise StartError(
            f"DFLASH target_layer_ids {list(config.target_layer_ids)} do not fit a target of {aim.layers} layers"
        )
    hidden, layers = model.hidden_size, range(model.layers)
    return Draft(
        config=config,
        stack=Stack(
            config=model,
            layers=tuple(load_layer(tensors, f"layers.{index}.", model) for index in layers),
            rotary=Rotary(model, positions),
            causal=False,
        ),
        fuse=Matrix(_fuse(tensors, hidden, len(config.target_layer_ids))),
        context_norm=take(tensors, "hidden_norm.weight", (hidden,)),
        norm=take(tensors, "norm.weight", (hidden,)),
    )


def _fuse(tensors: Tensors, hidden: int, count: int) -> Array:
    found, wanted = tensors.get("fc.weight"), (hidden, count * hidden)
    if found is not None and found.shape != wanted:  # SGLang's words, so that one log signature serves both
        raise StartError(
            "DFLASH fc.weight shape mismatch. This usually means the draft checkpoint's number of context "
            f"features (K) does not match this config. Expected fc.weight.shape={wanted} "
            f"(num_context_features={count}, hidden_size={hidden}), but got {found.shape} for weight 'fc.weight'."
        )
    return take(tensors, "fc.weight", wanted)
