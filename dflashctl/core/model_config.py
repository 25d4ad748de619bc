"""ModelConfig: what serving reads from a model's config.json, with None for what it does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dflashctl.core.engine import ModelFacts
from dflashctl.core.json_text import json_loads
from dflashctl.core.quantized_head import quantized_head

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONTEXT_KEYS = (
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embeddings",
)
_SCALED_ALREADY = ("llama3", "yarn", "longrope")
_NESTED = ("text_config", "language_config", "llm_config", "language_model")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """`facts` for planning, and what only the pair check needs.

    `special_ids` are (name, token id) of pad, eos and bos; `code` names the custom classes that `auto_map` loads.
    """

    facts: ModelFacts
    special_ids: tuple[tuple[str, int], ...] = ()
    draft_vocab_size: int | None = None
    target_hidden_size: int | None = None
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
        code=_custom_classes(data),
    )


def parse_config_text(text: bytes) -> ModelConfig | None:
    """The config from the bytes of config.json; None when that is no JSON object (a login page, for one)."""
    try:
        return parse_config(json_loads(text))
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
        quantized_lm_head=quantized_head(data, text),
        context_tokens=_context(text),
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
    """The length that SGLang derives; None when the config names none and the model class's own default counts.

    sglang 0.5.23: srt/utils/hf_transformers/common.py, get_context_length, on what transformers 5 makes of the config:
    it reads rope_parameters as rope_scaling, and gives the three kinds of _SCALED_ALREADY the original length that
    they lack. A config that has an original length is taken to name the scaled one itself.
    """
    length = next((n for key in _CONTEXT_KEYS if (n := _int(text.get(key))) is not None), None)
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    if length is None or not isinstance(scaling, dict):
        return length
    scaled = "original_max_position_embeddings" in scaling
    if scaled or scaling.get("rope_type", scaling.get("type")) in _SCALED_ALREADY:
        return length
    factor = scaling.get("factor", 1)
    return int(factor * length) if isinstance(factor, (int, float)) else length


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
