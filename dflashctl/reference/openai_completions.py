"""POST /v1/completions: plain prompts, one or many, as text or as tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.fields import is_integers
from dflashctl.reference.openai_api import Completion, Piece, refuse_stream_meta
from dflashctl.reference.parameters import sampling_params

if TYPE_CHECKING:
    from dflashctl.reference.engine import Engine
    from dflashctl.reference.fields import Fields
    from dflashctl.reference.tokenizer import Tokenizer

_DEFAULT_LENGTH = 16  # OpenAI's own


class TextShape:
    """How completion objects are written."""

    whole = "text_completion"
    chunk = "text_completion"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def choice(self, piece: Piece) -> dict[str, Any]:
        """Return the text and its log-probabilities."""
        return {"text": piece.text, "logprobs": self._logprobs(piece)}

    def opening(self) -> None:
        """Return nothing: the first chunk has text already."""

    def delta(self, piece: Piece) -> dict[str, Any]:
        """Return new text."""
        return self.choice(piece)

    def _logprobs(self, piece: Piece) -> dict[str, Any] | None:
        if not piece.logprobs:
            return None
        names = [self._name(item.token_id) for item in piece.logprobs]
        offsets, at = [], piece.offset
        for name in names:
            offsets.append(at)
            at += len(name)
        return {
            "text_offset": offsets,
            "token_logprobs": [item.logprob for item in piece.logprobs],
            "tokens": names,
            "top_logprobs": [
                {self._name(token): logprob for token, logprob in item.top} for item in piece.logprobs
            ],
        }

    def _name(self, token_id: int) -> str:
        return self._tokenizer.decode([token_id], skip_special_tokens=False)


def text_completion(fields: Fields, engine: Engine, seed: int) -> Completion:
    """Begin the generation that a completion request asks for."""
    refuse_stream_meta(fields)
    for name in ("echo", "suffix"):
        if fields.any(name):
            raise BadRequestError(f"{name} is not supported by the reference engine.")
    params = sampling_params(
        fields, length="max_tokens", default_length=_DEFAULT_LENGTH, seed="seed", fallback=seed
    )
    logprobs = fields.integer("logprobs", 0) if fields.has("logprobs") else None
    shape = TextShape(engine.tokenizer)
    return Completion(fields, engine, shape, _prompts(fields, engine), params, logprobs)


def _prompts(fields: Fields, engine: Engine) -> list[tuple[int, ...]]:
    prompt = fields.any("prompt")
    if is_integers(prompt) and prompt:
        return [tuple(prompt)]
    if isinstance(prompt, list) and prompt and all(is_integers(item) for item in prompt):
        return [tuple(item) for item in prompt]
    if isinstance(prompt, str):
        return [engine.tokenizer.encode(prompt)]
    texts = fields.strings("prompt")
    if not texts:
        raise fields.wrong("prompt", "list_type", "Input should be a prompt or a list of prompts")
    return [engine.tokenizer.encode(text) for text in texts]
