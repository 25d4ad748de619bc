"""What one event of a chat stream says, read from its JSON once."""

from __future__ import annotations


class StreamEvent:
    """The members that a load run wants; None for what is absent or of no use. Shared between answers: read it only.

    `is_chunk`: something was generated, be it text, reasoning or a tool call. `counts` are the engine's exact ones.
    """

    __slots__ = ("chosen", "content", "counts", "error", "finish_reason", "is_chunk", "reasoning", "usage")

    def __init__(self, found: dict[str, object]) -> None:
        choice = first_choice(found)
        delta, reason, usage = choice.get("delta"), choice.get("finish_reason"), found.get("usage")
        delta = delta if isinstance(delta, dict) else {}
        content, reasoning = delta.get("content"), delta.get("reasoning_content") or delta.get("reasoning")
        error = found.get("error")
        self.error = error_text(error) if error else None
        self.chosen = bool(choice)
        self.is_chunk = bool(content or reasoning or delta.get("tool_calls"))
        self.content = content if isinstance(content, str) and content else None
        self.reasoning = reasoning if isinstance(reasoning, str) and reasoning else None
        self.finish_reason = reason if isinstance(reason, str) else None
        self.usage: dict[str, object] | None = usage if isinstance(usage, dict) else None
        self.counts = _exact_counts(found.get("sglext"))


def _exact_counts(extension: object) -> dict[str, object] | None:
    """SGLang's addition; a list of one where several answers were asked for."""
    counts = extension.get("spec_tokens_details") if isinstance(extension, dict) else None
    if isinstance(counts, list):
        counts = counts[0] if counts else None
    return counts if isinstance(counts, dict) else None


def error_text(error: object) -> str:
    """The message of an OpenAI error object, or whatever stands there, cut to 300 characters."""
    message = error.get("message") if isinstance(error, dict) else None
    return str(message or error)[:300]


def first_choice(found: dict[str, object]) -> dict[str, object]:
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}
