"""An answer bound by a JSON schema keeps to it, speculation or not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dflashctl.core.replies import BadReply, parse_json
from dflashctl.core.smoke import Passed, ProofFailed, Skipped

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
# Such an object that is not at its end: a model out of its depth goes on with blanks, which grammars allow.
_MEMBER = r'(?:"name"\s*:\s*"(?:[^"\\]|\\.)*"|"age"\s*:\s*-?\d+)'
_BEGUN = re.compile(
    rf'\s*\{{\s*(?:{_MEMBER}\s*(?:,\s*{_MEMBER}\s*)?|(?:{_MEMBER}\s*,\s*)?"name"\s*:\s*"(?:[^"\\]|\\.)*\\?)?'
)
_FORMAT = {"type": "json_schema", "json_schema": {"name": "person", "schema": _SCHEMA, "strict": True}}


def applies(client: Client) -> str | None:
    return None if client.facts.grammar_backend else "the server has no grammar backend"


def run(client: Client) -> Passed | Skipped:
    completion = client.chat(_QUESTION, response_format=_FORMAT, max_tokens=_TOKENS)
    if completion.finish_reason == "length" and _BEGUN.fullmatch(completion.text):
        return Skipped(
            reason=f"the model never closed its object within {_TOKENS} tokens; what it wrote keeps to the schema"
        )
    try:
        person = parse_json(completion.text, "the answer")
    except BadReply as error:
        raise ProofFailed(error.message) from error
    good = isinstance(person.get("name"), str) and isinstance(person.get("age"), int)
    if not good or set(person) != {"name", "age"}:
        raise ProofFailed(f"the answer does not keep to the schema: {completion.text!r}")
    return Passed(note=completion.text)
