"""Completion: one generation as an OpenAI-style or native reply tells it, streamed or whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from dflashctl.core.errors import CheckFailed
from dflashctl.core.json_text import json_loads

_NOTHING: Mapping[str, object] = MappingProxyType({})
DONE = "[DONE]"


class BadReply(CheckFailed):
    """A reply that is not what the interface promises."""


@dataclass(frozen=True, kw_only=True)
class SpecCounts:
    """One request's speculation as the engine counted it; `correct_drafts` leaves the bonus tokens out."""

    verify_steps: int
    correct_drafts: int | None = None
    proposed_drafts: int | None = None
    histogram: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class TokenChoice:
    """One generated token with its best alternatives, each (bytes, log probability), best first."""

    token: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Completion:
    """`text` is the answer, `reasoning` what came before it in its own field; None counts are unknown.

    `events` and `done` (the final `[DONE]` was seen) are None for a reply that was not streamed.
    """

    text: str = ""
    reasoning: str = ""
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    spec: SpecCounts | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tokens: tuple[TokenChoice, ...] = ()
    events: int | None = None
    done: bool | None = None

    @property
    def whole(self) -> str:
        """Reasoning and answer as one text."""
        return self.reasoning + self.text

    @property
    def accept_length(self) -> float | None:
        """Completion tokens / verify steps, the figure of the model cards."""
        if self.spec is None or self.completion_tokens is None or self.spec.verify_steps <= 0:
            return None
        return self.completion_tokens / self.spec.verify_steps


def mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else _NOTHING


def values(value: object) -> tuple[object, ...]:
    return tuple(value) if isinstance(value, list) else ()


def integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def parse_json(body: bytes | str, what: str) -> Mapping[str, object]:
    """The JSON object in `body`; BadReply names `what` when it is something else."""
    try:
        value = json_loads(body)
    except ValueError as error:
        raise BadReply(f"{what} is not JSON: {_excerpt(body)!r}") from error
    if not isinstance(value, dict):
        raise BadReply(f"{what} is not a JSON object: {_excerpt(body)!r}")
    return value


def parse_chat(body: bytes) -> Completion:
    """A whole (not streamed) reply of /v1/chat/completions."""
    reply = parse_json(body, "the chat reply")
    choice = mapping(next(iter(values(reply.get("choices"))), None))
    message = mapping(choice.get("message"))
    if not message:
        raise BadReply(f"the chat reply has no message: {_excerpt(body)!r}")
    completion = Completion(
        text=text(message.get("content")) or "",
        reasoning=_reasoning(message),
        finish_reason=text(choice.get("finish_reason")),
        spec=_spec(mapping(choice.get("meta_info"))) or _sglext(reply),
        tool_calls=_tool_calls(message),
        tokens=_tokens(choice),
        cached_tokens=integer(mapping(choice.get("meta_info")).get("cached_tokens")),
    )
    return _with_usage(completion, mapping(reply.get("usage")))


def parse_chat_stream(payloads: Iterable[str]) -> Completion:
    """All `data:` payloads of one streamed chat reply; an error within the stream raises BadReply."""
    state = _Stream()
    for payload in payloads:
        state.take(payload)
    return state.completion()


def parse_generate(body: bytes) -> Completion:
    """A whole reply of the native /generate."""
    reply = parse_json(body, "the generate reply")
    meta = mapping(reply.get("meta_info"))
    if not meta:
        raise BadReply(f"the generate reply has no meta_info: {_excerpt(body)!r}")
    return Completion(
        text=text(reply.get("text")) or "",
        finish_reason=text(mapping(meta.get("finish_reason")).get("type")),
        prompt_tokens=integer(meta.get("prompt_tokens")),
        completion_tokens=integer(meta.get("completion_tokens")),
        cached_tokens=integer(meta.get("cached_tokens")),
        spec=_spec(meta),
    )


@dataclass
class _Stream:
    """What has been seen of a stream so far."""

    parts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    tokens: list[TokenChoice] = field(default_factory=list)
    latest: Completion = field(default_factory=Completion)
    events: int = 0
    done: bool = False

    def take(self, payload: str) -> None:
        if payload == DONE:
            self.done = True
            return
        event = parse_json(payload, "a chunk of the stream")
        if "error" in event or event.get("object") == "error":
            raise BadReply(f"the stream carries an error: {_excerpt(payload)!r}")
        self.events += 1
        self.latest = _with_usage(self.latest, mapping(event.get("usage")))
        spec = _sglext(event)
        if spec:
            self.latest = replace(self.latest, spec=spec)
        for choice in values(event.get("choices")):
            self._take_choice(mapping(choice))

    def _take_choice(self, choice: Mapping[str, object]) -> None:
        delta = mapping(choice.get("delta"))
        self.parts.append(text(delta.get("content")) or "")
        self.thoughts.append(_reasoning(delta))
        self.calls.extend(_tool_calls(delta))
        self.tokens.extend(_tokens(choice))
        reason = text(choice.get("finish_reason"))
        if reason:
            self.latest = replace(self.latest, finish_reason=reason)

    def completion(self) -> Completion:
        return replace(
            self.latest,
            text="".join(self.parts),
            reasoning="".join(self.thoughts),
            tool_calls=tuple(self.calls),
            tokens=tuple(self.tokens),
            events=self.events,
            done=self.done,
        )


def _with_usage(completion: Completion, usage: Mapping[str, object]) -> Completion:
    if not usage:
        return completion
    cached = integer(mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    return replace(
        completion,
        prompt_tokens=integer(usage.get("prompt_tokens")),
        completion_tokens=integer(usage.get("completion_tokens")),
        total_tokens=integer(usage.get("total_tokens")),
        cached_tokens=completion.cached_tokens if cached is None else cached,
    )


def _reasoning(message: Mapping[str, object]) -> str:
    """SGLang writes reasoning_content, vLLM's Kimi parser reasoning."""
    return text(message.get("reasoning_content")) or text(message.get("reasoning")) or ""


def _tool_calls(message: Mapping[str, object]) -> tuple[ToolCall, ...]:
    functions = [mapping(mapping(call).get("function")) for call in values(message.get("tool_calls"))]
    return tuple(
        ToolCall(name=text(call.get("name")) or "", arguments=text(call.get("arguments")) or "")
        for call in functions
    )


def _tokens(choice: Mapping[str, object]) -> tuple[TokenChoice, ...]:
    content = values(mapping(choice.get("logprobs")).get("content"))
    return tuple(_token_choice(mapping(entry)) for entry in content)


def _token_choice(entry: Mapping[str, object]) -> TokenChoice:
    token, logprob = _token(entry)
    top = sorted(
        (_token(mapping(other)) for other in values(entry.get("top_logprobs"))), key=lambda pair: -pair[1]
    )
    return TokenChoice(token=token, logprob=logprob, top=tuple(top))


def _token(entry: Mapping[str, object]) -> tuple[bytes, float]:
    raw = [code for code in (integer(item) for item in values(entry.get("bytes"))) if code is not None]
    token = bytes(raw) if raw else (text(entry.get("token")) or "").encode()
    logprob = number(entry.get("logprob"))
    return token, float("-inf") if logprob is None else logprob


def _sglext(reply: Mapping[str, object]) -> SpecCounts | None:
    details = mapping(reply.get("sglext")).get("spec_tokens_details")
    first = next(iter(details), None) if isinstance(details, list) else details
    return _spec(mapping(first))


def _spec(meta: Mapping[str, object]) -> SpecCounts | None:
    """Names by release: spec_num_correct_drafts from 0.5.12 on, spec_accepted_drafts before."""
    steps = integer(meta.get("spec_verify_ct"))
    if steps is None:
        return None
    histogram = values(meta.get("spec_correct_drafts_histogram", meta.get("spec_accept_histogram")))
    correct = meta.get("spec_num_correct_drafts", meta.get("spec_accepted_drafts"))
    proposed = meta.get("spec_num_proposed_drafts", meta.get("spec_proposed_drafts"))
    return SpecCounts(
        verify_steps=steps,
        correct_drafts=integer(correct),
        proposed_drafts=integer(proposed),
        histogram=tuple(count for count in map(integer, histogram) if count is not None),
    )


def _excerpt(body: bytes | str, size: int = 120) -> str:
    readable = body.decode(errors="replace") if isinstance(body, bytes) else body
    return readable if len(readable) <= size else readable[:size] + "…"
