"""Sampling parameters from the bodies of both APIs, checked against the ranges that SGLang allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.request import SamplingParams

if TYPE_CHECKING:
    from dflashctl.reference.fields import Fields

_WHOLE_VOCABULARY = 1 << 30
_NEUTRAL = {"frequency_penalty": 0, "presence_penalty": 0, "repetition_penalty": 1, "min_new_tokens": 0}
_UNSUPPORTED = ("logit_bias", "json_schema", "regex", "ebnf", "structural_tag", "stop_regex", "lora_path")


def sampling_params(
    fields: Fields, *, length: str, default_length: int, seed: str, fallback: int
) -> SamplingParams:
    """Read the parameters from ``fields``.

    ``length`` and ``seed`` are what the API calls the most tokens and the seed; ``fallback`` is the seed of a
    request that names none. A length beyond the context isn't refused; the answer then ends where it does.
    """
    refuse_unsupported(fields)
    max_new_tokens = fields.integer(length, default_length)
    if max_new_tokens < 1:
        raise BadRequestError(f"{length} must be at least 1, got {max_new_tokens}.")
    top_k = fields.integer("top_k", -1)
    if top_k < -1 or top_k == 0:
        raise BadRequestError(f"top_k must be -1 (disable) or at least 1, got {top_k}.")
    return SamplingParams(
        max_new_tokens=max_new_tokens,
        temperature=_ranged(fields, "temperature", 1.0, 0.0, 1000.0),
        top_p=_ranged(fields, "top_p", 1.0, 1e-9, 1.0),
        top_k=-1 if top_k >= _WHOLE_VOCABULARY else top_k,
        min_p=_ranged(fields, "min_p", 0.0, 0.0, 1.0),
        seed=fields.integer(seed, fallback),
        stop=fields.strings("stop"),
        stop_token_ids=frozenset(fields.integers("stop_token_ids")),
        ignore_eos=fields.flag("ignore_eos"),
        skip_special_tokens=fields.flag("skip_special_tokens", default=True),
        no_stop_trim=fields.flag("no_stop_trim"),
    )


def refuse_unsupported(fields: Fields) -> None:
    """Refuse what would change the answer and isn't computed here, instead of ignoring it."""
    for name, neutral in _NEUTRAL.items():
        if fields.number(name, neutral) != neutral:
            raise BadRequestError(f"{name} is not supported by the reference engine.")
    for name in _UNSUPPORTED:
        if fields.any(name):
            raise BadRequestError(f"{name} is not supported by the reference engine.")


def choices(fields: Fields) -> int:
    """Return ``n``, how many answers are wanted."""
    count = fields.integer("n", 1)
    if not 1 <= count <= 128:  # noqa: PLR2004 - OpenAI's own limit
        raise BadRequestError(f"n must be between 1 and 128, got {count}.")
    return count


def _ranged(fields: Fields, name: str, default: float, low: float, high: float) -> float:
    value = fields.number(name, default)
    if not low <= value <= high:
        raise BadRequestError(f"{name} must be in [{low:g}, {high:g}], got {value}.")
    return value
