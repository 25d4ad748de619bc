"""An answer bound by a JSON schema keeps to it, speculation or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.replies import BadReply, parse_json
from dflashctl.core.smoke import Passed, ProofFailed

if TYPE_CHECKING:
    from dflashctl.proofs.client import Client

ID = "json-schema"
TITLE = "keeps to a JSON schema"
QUICK = False
_TOKENS = 2048
_QUESTION = "Give the name and the age of a person of your invention."
_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
_FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": _SCHEMA, "strict": True}}


def applies(client: Client) -> str | None:
    return None if client.facts.grammar_backend else "the server has no grammar backend"


def run(client: Client) -> Passed:
    completion = client.chat(_QUESTION, response_format=_FORMAT, max_tokens=_TOKENS)
    try:
        person = parse_json(completion.text, "the answer")
    except BadReply as error:
        raise ProofFailed(error.message) from error
    good = isinstance(person.get("name"), str) and isinstance(person.get("age"), int)
    if not good or set(person) != {"name", "age"}:
        raise ProofFailed(f"the answer does not keep to the schema: {completion.text!r}")
    return Passed(note=completion.text)
