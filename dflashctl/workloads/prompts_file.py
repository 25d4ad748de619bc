"""Prompts from a file of one's own: JSON lines of OpenAI messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dflashctl.core.errors import UsageProblem
from dflashctl.core.json_text import json_loads
from dflashctl.core.workload import BenchPrompt, Message

_ROLES = ("system", "developer", "user", "assistant", "tool")


def read_prompts(text: str, origin: str, count: int | None = None) -> tuple[BenchPrompt, ...]:
    """One prompt a line: `{"messages": […]}` (with optional `id`, `max_tokens`), a bare list, or `{"prompt": "…"}`.

    UsageProblem names the file and the line of the first one that is none of these.
    """
    numbered = enumerate(
        text.split("\n"), 1
    )  # splitlines() would also cut at U+2028 and U+0085 inside a string
    lines = [(number, line) for number, line in numbered if line.strip()]
    if not lines:
        raise UsageProblem(f"{origin} holds no prompts", hint='one JSON object a line: {"messages": [...]}')
    found = tuple(_prompt(line, f"{origin}:{number}", number) for number, line in lines[:count])
    times = Counter(prompt.id for prompt in found)
    twice = next((name for name, count in times.items() if count > 1), None)
    if twice is not None:
        raise UsageProblem(f"{origin} has two prompts with the id {twice!r}")
    return found


def _prompt(line: str, where: str, number: int) -> BenchPrompt:
    try:
        entry = json_loads(line)
    except ValueError as error:
        raise UsageProblem(f"{where} is not JSON: {error}") from error
    fields = {"messages": entry} if isinstance(entry, list) else entry
    if isinstance(fields, Mapping) and isinstance(fields.get("prompt"), str):
        fields = {**fields, "messages": [{"role": "user", "content": fields["prompt"]}]}
    messages = fields.get("messages") if isinstance(fields, Mapping) else None
    if not isinstance(messages, list) or not messages:
        raise UsageProblem(
            f"{where} has no messages", hint='{"messages": [{"role": "user", "content": "…"}]}'
        )
    limit = fields.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise UsageProblem(f"{where} has max_tokens {limit!r}, not a whole number above 0")
    return BenchPrompt(
        id=str(fields.get("id", f"line-{number}")),
        messages=tuple(_message(message, where) for message in messages),
        max_tokens=limit,
    )


def _message(message: object, where: str) -> Message:
    """(role, text) where these are all of it, else the message as it is; UsageProblem when it is not well-formed."""
    if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
        raise UsageProblem(f"{where} has a message without a role of {', '.join(_ROLES)}")
    role, content, calls = str(message["role"]), message.get("content"), message.get("tool_calls")
    if calls is not None and not (
        isinstance(calls, list) and all(isinstance(call, Mapping) for call in calls)
    ):
        raise UsageProblem(f"{where} has tool_calls that are no list of objects")
    if isinstance(content, str):
        return message if message.keys() - {"role", "content"} else (role, content)
    if isinstance(content, list) and content:
        _require_texts(content, where)
    elif content is not None or not calls:
        raise UsageProblem(
            f"{where} has a message without text content", hint="a text, a list of text parts, or tool_calls"
        )
    return message


def _require_texts(parts: list[object], where: str) -> None:
    for part in parts:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind != "text":
            raise UsageProblem(f"{where} has a part of type {kind!r}: only text is measured here")
        if not (isinstance(part, Mapping) and isinstance(part.get("text"), str)):
            raise UsageProblem(f"{where} has a text part without a text")
