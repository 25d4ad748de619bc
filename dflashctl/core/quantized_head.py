"""Whether a checkpoint's lm_head is quantized, from its config, as SGLang's loaders decide it."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# The head's name in a language model, and inside a multimodal one.
_NAMES = ("lm_head", "language_model.lm_head")
_LEFT_OUT = ("ignore", "modules_to_not_convert", "exclude_modules")


def quantized_head(config: Mapping[str, object], text: Mapping[str, object]) -> bool | None:
    """None when neither config nor its text part says anything of quantization, or not in a way known here.

    - ModelOpt (NVFP4, FP8) quantizes the head unless it is left out by name (srt/layers/quantization/modelopt_quant.py,
      `is_layer_excluded`).
    - compressed-tensors quantizes it only where a target names it (compressed_tensors.py, `get_lm_head_scheme`).
    - GPTQ, AWQ and AutoRound have a switch, `lm_head`. Other methods never touch it.
    """
    quant = next((found for part in (config, text) if (found := _section(part)) is not None), None)
    if quant is None:
        return None
    if config.get("tie_word_embeddings", text.get("tie_word_embeddings")) is True:
        return False
    method = str(quant.get("quant_method", "")).lower()
    if method.startswith("modelopt") or "quant_algo" in quant:
        return _modelopt(quant)
    if method == "compressed-tensors":
        return _named(_targets(quant)) and not _named(_words(quant.get("ignore")))
    return bool(quant.get("lm_head", quant.get("lm_head_quantized", False)))


def _section(part: Mapping[str, object]) -> Mapping[str, object] | None:
    found = part.get("quantization_config") or part.get("compression_config")
    return found if isinstance(found, dict) else None


def _modelopt(quant: Mapping[str, object]) -> bool | None:
    inner = quant.get("quantization")
    section = inner if isinstance(inner, dict) else quant
    if "MIXED" in str(section.get("quant_algo", "")).upper():
        return None
    lists = [_words(section[key]) for key in _LEFT_OUT if isinstance(section.get(key), list)]
    return not any(_excluded(pattern) for words in lists for pattern in words)


def _excluded(pattern: str) -> bool:
    return any(fnmatchcase(name, pattern) for name in (*_NAMES, "language_model"))


def _targets(quant: Mapping[str, object]) -> Iterable[str]:
    groups = quant.get("config_groups")
    found = groups.values() if isinstance(groups, dict) else ()
    return [target for group in found if isinstance(group, dict) for target in _words(group.get("targets"))]


def _named(words: Iterable[str]) -> bool:
    return any(_names_head(word) for word in words)


def _names_head(word: str) -> bool:
    if not word.startswith("re:"):
        return word in _NAMES
    try:
        return any(re.match(word.removeprefix("re:"), name) for name in _NAMES)
    except re.error:
        return False


def _words(value: object) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
