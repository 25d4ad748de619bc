"""Prompts from a file of one's own: JSON lines of OpenAI messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dflashctl.core.errors import UsageProblem
from dflashctl.core.json_text import json_loads
from dflashctl.core.workload import BenchPrompt

_ROLES = ("system", "developer", "user", "assistant")


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


def _message(message: object, where: str) -> tuple[str, str]:
    if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
        raise UsageProblem(f"{where} has a message without a role of {', '.join(_ROLES)}")
    content = message.get("content")
    if not isinstance(content, str):
        raise UsageProblem(f"{where} has a message without text content")
    return str(message["role"]), content
