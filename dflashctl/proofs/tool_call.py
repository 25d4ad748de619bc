"""A tool call comes back as a call with valid arguments, not as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.replies import BadReply, parse_json
from dflashctl.core.smoke import Passed, ProofFailed

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "tool-call"
TITLE = "calls tools"
QUICK = False
_TOKENS = 2048
_QUESTION = "What is the weather in Paris right now? Use the tool."
_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city right now.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


def applies(client: Client) -> str | None:
    return None if client.facts.tool_call_parser else "the server has no tool call parser"


def run(client: Client) -> Passed:
    completion = client.chat(_QUESTION, tools=[_TOOL], max_tokens=_TOKENS)
    if not completion.tool_calls:
        raise ProofFailed("no tool was called", evidence=(completion.text[:200],))
    call = completion.tool_calls[0]
    if call.name != "get_weather":
        raise ProofFailed(f"the tool {call.name!r} was called, which nobody offered")
    try:
        arguments = parse_json(call.arguments, "the tool call's arguments")
    except BadReply as error:
        raise ProofFailed(error.message) from error
    if not isinstance(arguments.get("city"), str):
        raise ProofFailed(f"the call has no city: {call.arguments!r}")
    return Passed(note=f"get_weather({call.arguments})")
