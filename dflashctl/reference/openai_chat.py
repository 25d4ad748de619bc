"""POST /v1/chat/completions: messages through the chat template, answers as assistant messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dflashctl.reference.errors import BadRequestError
from dflashctl.reference.openai_api import Completion, Piece, refuse_stream_meta
from dflashctl.reference.parameters import sampling_params

if TYPE_CHECKING:
    from dflashctl.reference.engine import Engine
    from dflashctl.reference.fields import Fields
    from dflashctl.reference.request import TokenLogprob
    from dflashctl.reference.tokenizer import Tokenizer

_MOST_LOGPROBS = 20  # OpenAI's own limit


class ChatShape:
    """How chat objects are written."""

    whole = "chat.completion"
    chunk = "chat.completion.chunk"

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def choice(self, piece: Piece) -> dict[str, Any]:
        """Return the message and its log-probabilities."""
        message = {
            "role": "assistant",
            "content": piece.text,
            "reasoning_content": None,
            "tool_calls": None,
        }
        return {"message": message, "logprobs": self._logprobs(piece)}

    def opening(self) -> dict[str, Any]:
        """Return the chunk that names the role."""
        return {"delta": _delta(role="assistant", content=""), "logprobs": None}

    def delta(self, piece: Piece) -> dict[str, Any]:
        """Return new text."""
        return {
            "delta": _delta(content=piece.text or None),
            "logprobs": self._logprobs(piece),
        }

    def _logprobs(self, piece: Piece) -> dict[str, Any] | None:
        if not piece.logprobs:
            return None
        return {"content": [self._entry(item) for item in piece.logprobs]}

    def _entry(self, item: TokenLogprob) -> dict[str, Any]:
        top = [self._token(token, logprob) for token, logprob in item.top]
        return {**self._token(item.token_id, item.logprob), "top_logprobs": top}

    def _token(self, token_id: int, logprob: float) -> dict[str, Any]:
        text = self._tokenizer.decode([token_id], skip_special_tokens=False)
        return {"token": text, "bytes": list(text.encode()), "logprob": logprob}


def chat_completion(fields: Fields, engine: Engine, seed: int) -> Completion:
    """Begin the generation that a chat request asks for."""
    refuse_stream_meta(fields)
    _refuse_tools(fields)
    prompt = engine.tokenizer.chat(_messages(fields), _template_options(fields))
    length = "max_completion_tokens" if fields.has("max_completion_tokens") else "max_tokens"
    params = sampling_params(
        fields,
        length=length,
        default_length=engine.models.context_length,
        seed="seed",
        fallback=seed,
    )
    return Completion(fields, engine, ChatShape(engine.tokenizer), [prompt], params, _top_logprobs(fields))


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = fields.list("messages")
    if not messages:
        raise BadRequestError("Messages cannot be empty.")
    return [_message(fields, message) for message in messages]


def _message(fields: Fields, message: object) -> dict[str, Any]:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise fields.wrong("messages", "dict_type", "Each message needs a role")
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(_part(fields, part) for part in content)
    if content is not None and not isinstance(content, str):
        raise fields.wrong("messages", "string_type", "A message's content should be a valid string")
    return {**message, "content": content or ""}


def _part(fields: Fields, part: object) -> str:
    if not isinstance(part, dict) or not isinstance(part.get("text"), str):
        raise fields.wrong("messages", "text_type", "This model reads text parts only")
    return str(part["text"])


def _template_options(fields: Fields) -> dict[str, Any]:
    value = fields.any("chat_template_kwargs")
    if value is not None and not isinstance(value, dict):
        raise fields.wrong("chat_template_kwargs", "dict_type", "Input should be a valid dictionary")
    return value or {}


def _refuse_tools(fields: Fields) -> None:
    if fields.any("tools") and fields.any("tool_choice") != "none":
        raise BadRequestError("Tools are not supported by the reference engine.")
    if fields.object("response_format").string("type", "text") != "text":
        raise BadRequestError("A response_format other than text is not supported by the reference engine.")


def _top_logprobs(fields: Fields) -> int | None:
    if not fields.flag("logprobs"):
        return None
    count = fields.integer("top_logprobs", 0)
    if not 0 <= count <= _MOST_LOGPROBS:
        raise BadRequestError(f"top_logprobs must be between 0 and {_MOST_LOGPROBS}, got {count}.")
    return count


def _delta(*, role: str | None = None, content: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": content, "reasoning_content": None, "tool_calls": None}
