"""The numbers of config.json that the two models need, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dflashctl.reference.errors import StartError

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The dimensions of a Qwen3-style stack of layers."""

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    norm_eps: float
    rope_theta: float
    max_positions: int
    tied_embeddings: bool
    eos_token_ids: frozenset[int]


@dataclass(frozen=True, kw_only=True)
class DraftConfig:
    """What a DFlash drafter adds to the dimensions of its layers."""

    model: ModelConfig
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]


def model_config(raw: Mapping[str, Any], architecture: str) -> ModelConfig:
    """Check that ``raw`` (config.json) is an ``architecture`` that the engine computes, and pick its numbers."""
    names = raw.get("architectures") or ["none"]
    if names[0] != architecture:
        raise StartError(f"the reference engine needs the architecture {architecture}, not {names[0]!r}")
    _refuse_variants(raw)
    heads, hidden = _number(raw, "num_attention_heads"), _number(raw, "hidden_size")
    rope = raw.get("rope_parameters") or {}
    return ModelConfig(
        architecture=architecture,
        vocab_size=_number(raw, "vocab_size"),
        hidden_size=hidden,
        intermediate_size=_number(raw, "intermediate_size"),
        layers=_number(raw, "num_hidden_layers"),
        heads=heads,
        kv_heads=_number(raw, "num_key_value_heads"),
        head_dim=int(raw.get("head_dim") or hidden // heads),
        norm_eps=float(raw.get("rms_norm_eps", 1e-6)),
        rope_theta=float(rope.get("rope_theta") or raw.get("rope_theta") or 10000.0),
        max_positions=_number(raw, "max_position_embeddings"),
        tied_embeddings=bool(raw.get("tie_word_embeddings", False)),
        eos_token_ids=token_ids(raw.get("eos_token_id")),
    )


def draft_config(raw: Mapping[str, Any]) -> DraftConfig:
    """Read a DFlash drafter's config.json; ``dflash_config`` names the mask token and the target's layers."""
    special = raw.get("dflash_config")
    if not isinstance(special, dict):
        raise StartError("the draft's config.json has no dflash_config: it is not a DFlash drafter")
    return DraftConfig(
        model=model_config(raw, "DFlashDraftModel"),
        block_size=_number(raw, "block_size"),
        mask_token_id=_number(special, "mask_token_id"),
        target_layer_ids=tuple(int(layer) for layer in special.get("target_layer_ids", ())),
    )


def token_ids(value: object) -> frozenset[int]:
    """Return an ``eos_token_id`` field (a number, a list, or null) as a set."""
    if value is None:
        return frozenset()
    return frozenset(value) if isinstance(value, list) else frozenset({int(str(value))})


def _number(raw: Mapping[str, Any], name: str) -> int:
    value = raw.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise StartError(f"config.json: {name} must be a whole number, not {value!r}")
    return value


def _refuse_variants(raw: Mapping[str, Any]) -> None:
    rope = (raw.get("rope_parameters") or raw.get("rope_scaling") or {}).get("rope_type", "default")
    variants = {
        "attention_bias": raw.get("attention_bias", False),
        "use_sliding_window": raw.get("use_sliding_window", False),
        "rope_type": rope != "default" and rope,
        "hidden_act": raw.get("hidden_act", "silu") != "silu" and raw.get("hidden_act"),
        "quantization_config": raw.get("quantization_config"),
    }
    for name, value in variants.items():
        if value:
            raise StartError(f"config.json: {name}={value!r} is beyond the reference engine")
