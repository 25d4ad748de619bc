"""Sizes of one token's KV and one request's linear-attention state on one GPU, as SGLang computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dflashctl.core.kv_geometry import Geometry, LinearState
    from dflashctl.core.serving import Serving

_BF16, _FP32 = 2, 4
_STATE_BYTES = {"float32": _FP32, "bfloat16": _BF16, "float16": _BF16}
_DTYPE_BYTES = {"fp8_e5m2": 1, "fp8_e4m3": 1}


def kv_bytes_per_token(geometry: Geometry, serving: Serving) -> int:
    """Bytes one token takes in the target's KV cache (model_executor/pool_configurator.py, `_compute_cell_size`).

    MLA keeps one latent of mla_dim values on every GPU; heads are divided over the GPUs of one attention group,
    each keeping at least one.
    """
    return _token_bytes(geometry, serving, _dtype_bytes(serving.kv_dtype))


def draft_kv_bytes_per_token(geometry: Geometry, serving: Serving) -> int:
    """The same for the draft's cache (mem_cache/kv_cache_dtype.py, `configure_kv_cache_dtype`).

    It has the target's type unless it is given its own; fa4 reads no other than the draft's own bf16.
    """
    own = "auto" if serving.draft_attention == "fa4" else serving.draft_kv_dtype or serving.kv_dtype
    return _token_bytes(geometry, serving, _dtype_bytes(own))


def _dtype_bytes(name: str | None) -> int:
    return _DTYPE_BYTES.get(name or "auto", _BF16)


def _token_bytes(geometry: Geometry, serving: Serving, size: int) -> int:
    layers = -(-geometry.attention_layers // serving.pipeline)
    if geometry.mla_dim is not None:
        return geometry.mla_dim * layers * size
    heads = max(1, geometry.kv_heads // serving.attention_tensor)
    return heads * (geometry.head_dim + geometry.v_head_dim) * layers * size


def state_bytes(linear: LinearState, serving: Serving) -> int:
    """Bytes of one request's state (configs/mamba_utils.py, `mamba_cache_per_req`).

    The convolution window is bf16 over query, key and value channels; the matrices have the state's type: as given,
    else as the config says, else fp32 (`mamba2_state_dtype`); ReplaySSM makes them fp32 where none is given.
    """
    tensor = serving.attention_tensor
    named = serving.state_dtype or (None if serving.replay_state else linear.state_dtype)
    state = _STATE_BYTES.get(named or "float32", _FP32)
    channels = (2 * linear.k_heads * linear.k_dim + linear.v_heads * linear.v_dim) // tensor
    window = channels * (linear.conv_kernel - 1) * _BF16
    matrices = (linear.v_heads // tensor) * linear.v_dim * linear.k_dim * state
    return (window + matrices) * linear.layers


def replay_bytes(linear: LinearState, serving: Serving) -> int:
    """Bytes of one slot's replay ring (configs/mamba_utils.py, `replayssm_ring_bytes_per_req`), KDA only."""
    if linear.kind != "kda":
        return 0
    length = serving.replay_length
    values = (linear.v_heads // serving.attention_tensor) * length
    keys = -(-linear.k_heads // serving.attention_tensor) * length
    per_layer = (
        values * linear.v_dim * _BF16  # raw values
        + keys * linear.k_dim * _BF16  # raw keys
        + values * _FP32  # beta
        + values * linear.k_dim * _FP32  # gate
        + values * linear.v_dim * _BF16  # d
        + keys * linear.k_dim * _BF16  # k
    )
    return per_layer * linear.layers
