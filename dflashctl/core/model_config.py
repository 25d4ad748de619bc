"""ModelConfig: what serving reads from a model's config.json, with None for what it does not say."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.engine import ModelFacts
from dflashctl.core.quantized_head import quantized_head

if TYPE_CHECKING:
    from collections.abc import Mapping

_NESTED = ("text_config", "language_config", "llm_config", "language_model")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """`facts` for planning, and what only the pair check needs.

    `special_ids` are (name, token id) of pad, eos and bos; `code` names the custom classes that `auto_map` loads.
    `context_tokens` is max_position_embeddings after rope scaling.
    """

    facts: ModelFacts
    special_ids: tuple[tuple[str, int], ...] = ()
    draft_vocab_size: int | None = None
    target_hidden_size: int | None = None
    context_tokens: int | None = None
    code: tuple[str, ...] = ()


def parse_config(data: object) -> ModelConfig | None:
    """The config, None when `data` (decoded JSON) is not a model's config at all."""
    if not isinstance(data, dict):
        return None
    text = _text_part(data)
    dflash = data.get("dflash_config")
    own = dflash if isinstance(dflash, dict) else {}
    return ModelConfig(
        facts=_facts(data, text, own),
        special_ids=_special_ids(data, text),
        draft_vocab_size=_int(data.get("draft_vocab_size")),
        target_hidden_size=_int(own.get("target_hidden_size", data.get("target_hidden_size"))),
        context_tokens=_context(text),
        code=_custom_classes(data),
    )


def parse_config_text(text: bytes) -> ModelConfig | None:
    """The config from the bytes of config.json; None when that is no JSON object (a login page, for one)."""
    try:
        return parse_config(json.loads(text))
    except ValueError:
        return None


def indexed_shards(data: object) -> tuple[str, ...] | None:
    """The files that a safetensors index names, None when `data` is not such an index."""
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        return None
    return tuple(sorted({str(name) for name in weight_map.values()}))


def _facts(data: Mapping[str, object], text: Mapping[str, object], own: Mapping[str, object]) -> ModelFacts:
    def first(key: str) -> object:
        return own.get(key, data.get(key, text.get(key)))

    causal = first("is_causal")
    return ModelFacts(
        architecture=next(iter(_strings(data.get("architectures")) or ()), None),
        block_size=_int(first("block_size")),
        num_hidden_layers=_int(text.get("num_hidden_layers")),
        num_target_layers=_int(first("num_target_layers")),
        target_layer_ids=_ints(first("target_layer_ids")),
        layer_types=_strings(text.get("layer_types")),
        is_causal=causal if isinstance(causal, bool) else None,
        hidden_size=_int(text.get("hidden_size")),
        vocab_size=_int(text.get("vocab_size")),
        mask_token_id=_int(first("mask_token_id")),
        sliding_window=_window(text),
        max_position_embeddings=_int(text.get("max_position_embeddings")),
        quantized_lm_head=quantized_head(data, text),
    )


def _text_part(data: Mapping[str, object]) -> Mapping[str, object]:
    """Multimodal models keep the language model's numbers one level down."""
    if "hidden_size" in data and "num_hidden_layers" in data:
        return data
    return next((part for key in _NESTED if isinstance(part := data.get(key), dict)), data)


def _window(text: Mapping[str, object]) -> int | None:
    return None if text.get("use_sliding_window") is False else _int(text.get("sliding_window"))


def _special_ids(data: Mapping[str, object], text: Mapping[str, object]) -> tuple[tuple[str, int], ...]:
    found: dict[tuple[str, int], None] = {}
    for part in (data, text):
        for name in ("pad_token_id", "eos_token_id", "bos_token_id"):
            value = part.get(name)
            for token in value if isinstance(value, list) else [value]:
                number = _int(token)
                if number is not None:
                    found[name, number] = None
    return tuple(found)


def _context(text: Mapping[str, object]) -> int | None:
    """max_position_embeddings times the rope factor, as SGLang derives a model's length."""
    length = _int(text.get("max_position_embeddings"))
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if length is None or not isinstance(scaling, dict):
        return length
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    factor = scaling.get("factor")
    if kind in {"default", "su", "longrope", "llama3", "mrope"} or not isinstance(factor, (int, float)):
        return length
    original = _int(scaling.get("original_max_position_embeddings"))
    return max(length, int(factor * (original or length))) if kind == "yarn" else int(factor * length)


def _custom_classes(data: Mapping[str, object]) -> tuple[str, ...]:
    auto_map = data.get("auto_map")
    return tuple(sorted(str(v) for v in auto_map.values())) if isinstance(auto_map, dict) else ()


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _ints(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(_int(v) is not None for v in value):
        return None
    return tuple(value)


def _strings(value: object) -> tuple[str, ...] | None:
    return tuple(str(v) for v in value) if isinstance(value, list) else None
