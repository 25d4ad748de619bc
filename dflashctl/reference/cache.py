"""Keys and values of one sequence, kept for every layer of one model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from dflashctl.reference.config import ModelConfig
    from dflashctl.reference.weights import Array

_SMALLEST = 128


class KeyValueCache:
    """One sequence's keys and values, each [layers, kv_heads, capacity, head_dim] in float32.

    ``length`` counts the verified tokens. What lies beyond it is scratch: a block that is being verified is
    written there, and rejecting it costs nothing, because the next block overwrites it.
    """

    def __init__(self, config: ModelConfig) -> None:
        shape = (config.layers, config.kv_heads, 0, config.head_dim)  # a waiting request costs nothing
        self.keys: Array = np.empty(shape, np.float32)
        self.values: Array = np.empty(shape, np.float32)
        self.length = 0

    def reserve(self, tokens: int) -> None:
        """Make room for ``tokens`` positions in all, at least doubling so that appending stays cheap."""
        capacity = self.keys.shape[2]
        if tokens > capacity:
            extra = max(tokens, 2 * capacity, _SMALLEST) - capacity
            self.keys, self.values = _grown(self.keys, extra), _grown(self.values, extra)

    def write(self, layer: int, start: int, keys: Array, values: Array) -> None:
        """Store ``keys`` and ``values`` [tokens, kv_heads, head_dim] of ``layer`` from position ``start`` on."""
        stop = start + len(keys)
        self.keys[layer, :, start:stop] = keys.transpose(1, 0, 2)
        self.values[layer, :, start:stop] = values.transpose(1, 0, 2)

    def view(self, layer: int, start: int, stop: int) -> tuple[Array, Array]:
        """Return keys and values of positions start..stop, each [kv_heads, stop - start, head_dim]."""
        return self.keys[layer, :, start:stop], self.values[layer, :, start:stop]


def _grown(array: Array, extra: int) -> Array:
    layers, heads, _, width = array.shape
    return np.concatenate([array, np.empty((layers, heads, extra, width), np.float32)], axis=2)
