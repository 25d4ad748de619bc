"""Geometry: what of a model's config decides its KV cache and linear-attention state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_NESTED = ("text_config", "language_config", "llm_config")
_VISION = ("vision_config", "visual_config")


@dataclass(frozen=True, kw_only=True)
class LinearState:
    """Linear-attention layers: `kind` is kda or gdn; heads and dimensions are of the whole model.

    A request keeps, in each layer, a matrix of v_heads x v_dim x k_dim and a convolution window. `state_dtype` is the
    matrix's type where the config names one.
    """

    kind: str
    layers: int
    k_heads: int
    v_heads: int
    k_dim: int
    v_dim: int
    conv_kernel: int
    state_dtype: str | None = None


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """`attention_layers` keep a KV cache; with MLA it is one latent of `mla_dim` values, else per head.

    `estimated` marks figures that no config has confirmed.
    """

    attention_layers: int
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    mla_dim: int | None = None
    linear: LinearState | None = None
    context_tokens: int | None = None
    multimodal: bool = False
    estimated: bool = False


def geometry_of(config: Mapping[str, object]) -> Geometry | None:
    """The geometry that a config.json describes; None for a kind of model that this arithmetic does not know."""
    text = _text_part(config)
    layers = _int(text, "num_hidden_layers")
    if layers is None or _has_windowed_target_layers(text):
        return None
    linear = _linear_state(text, layers)
    named = text.get("mamba_ssm_dtype")
    if linear is not None and isinstance(named, str):
        linear = replace(linear, state_dtype=named)
    attention_layers = layers - (linear.layers if linear else 0)
    context = _int(text, "max_position_embeddings") or _int(text, "model_max_length")
    multimodal = any(isinstance(config.get(key), dict) for key in _VISION)
    rank, rope = _int(text, "kv_lora_rank"), _int(text, "qk_rope_head_dim")
    if rank is not None and rope is not None:
        return Geometry(
            attention_layers=attention_layers,
            mla_dim=rank + rope,
            linear=linear,
            context_tokens=context,
            multimodal=multimodal,
        )
    heads = _int(text, "num_attention_heads")
    kv_heads = _int(text, "num_key_value_heads") or heads
    hidden = _int(text, "hidden_size")
    dim = _int(text, "head_dim") or (hidden // heads if hidden and heads else None)
    if kv_heads is None or dim is None:
        return None
    return Geometry(
        attention_layers=attention_layers,
        kv_heads=kv_heads,
        head_dim=dim,
        v_head_dim=_int(text, "v_head_dim") or dim,
        linear=linear,
        context_tokens=context,
        multimodal=multimodal,
    )


def _text_part(config: Mapping[str, object]) -> Mapping[str, object]:
    if "num_hidden_layers" in config:
        return config
    return next((part for key in _NESTED if isinstance(part := config.get(key), dict)), config)


def _has_windowed_target_layers(text: Mapping[str, object]) -> bool:
    """A target that mixes full and sliding layers has pools of two sizes; a draft's window changes nothing."""
    kinds = text.get("layer_types")
    return isinstance(kinds, list) and {"sliding_attention", "full_attention"} <= set(kinds)


def _linear_state(text: Mapping[str, object], layers: int) -> LinearState | None:
    config = text.get("linear_attn_config")
    if isinstance(config, dict):
        return _kda(config)
    if _int(text, "linear_num_value_heads") is not None:
        return _gdn(text, layers)
    return None


def _kda(config: Mapping[str, object]) -> LinearState | None:
    kda, heads, dim = config.get("kda_layers"), _int(config, "num_heads"), _int(config, "head_dim")
    if not isinstance(kda, list) or not kda or heads is None or dim is None:
        return None
    kernel = _int(config, "short_conv_kernel_size") or 4
    return LinearState(
        kind="kda", layers=len(kda), k_heads=heads, v_heads=heads, k_dim=dim, v_dim=dim, conv_kernel=kernel
    )


def _gdn(text: Mapping[str, object], layers: int) -> LinearState | None:
    kinds, interval = text.get("layer_types"), _int(text, "full_attention_interval")
    if isinstance(kinds, list):
        count = sum(1 for kind in kinds if kind == "linear_attention")
    elif interval:
        count = layers - layers // interval
    else:
        return None
    sizes = [
        _int(text, key)
        for key in (
            "linear_num_key_heads",
            "linear_num_value_heads",
            "linear_key_head_dim",
            "linear_value_head_dim",
            "linear_conv_kernel_dim",
        )
    ]
    if None in sizes:
        return None
    k_heads, v_heads, k_dim, v_dim, kernel = (size or 0 for size in sizes)
    return LinearState(
        kind="gdn",
        layers=count,
        k_heads=k_heads,
        v_heads=v_heads,
        k_dim=k_dim,
        v_dim=v_dim,
        conv_kernel=kernel,
    )


def _int(config: Mapping[str, object], key: str) -> int | None:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
