"""ReferenceRun: greedy texts without speculation, saved so that another server can be compared with them."""

from __future__ import annotations

from dataclasses import dataclass

from dflashctl.core.errors import UsageProblem
from dflashctl.core.lossless import Generation
from dflashctl.core.replies import TokenChoice, mapping, number, text, values

REFERENCE_KIND = "dflashctl reference run"
REFERENCE_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class SavedPrompt:
    """`prompt` is the text that was asked; a run only speaks for prompts with the same id and text."""

    id: str
    prompt: str
    generations: tuple[Generation, ...]


@dataclass(frozen=True, kw_only=True)
class ReferenceRun:
    """`model` is what the server called itself, `engine_version` None where it did not say."""

    model: str | None
    engine_version: str | None
    prompts: tuple[SavedPrompt, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "kind": REFERENCE_KIND,
            "schema_version": REFERENCE_VERSION,
            "model": self.model,
            "engine_version": self.engine_version,
            "prompts": [
                {"id": p.id, "prompt": p.prompt, "generations": [_generation_json(g) for g in p.generations]}
                for p in self.prompts
            ],
        }


def read_reference(document: object, origin: str) -> ReferenceRun:
    """The run in a parsed JSON document; UsageProblem names `origin` when it is something else."""
    run = mapping(document)
    if run.get("kind") != REFERENCE_KIND:
        raise UsageProblem(
            f"{origin} is no reference run", hint="dflashctl smoke --save-reference FILE makes one"
        )
    if run.get("schema_version") != REFERENCE_VERSION:
        raise UsageProblem(
            f"{origin} has schema version {run.get('schema_version')!r}, not {REFERENCE_VERSION}"
        )
    return ReferenceRun(
        model=text(run.get("model")),
        engine_version=text(run.get("engine_version")),
        prompts=tuple(_prompt(mapping(entry), origin) for entry in values(run.get("prompts"))),
    )


def _prompt(entry: object, origin: str) -> SavedPrompt:
    fields = mapping(entry)
    name, prompt = text(fields.get("id")), text(fields.get("prompt"))
    generations = tuple(_generation(mapping(item)) for item in values(fields.get("generations")))
    if name is None or prompt is None or not generations:
        raise UsageProblem(f"{origin} holds a prompt without id, text or generations: {name!r}")
    return SavedPrompt(id=name, prompt=prompt, generations=generations)


def _generation_json(generation: Generation) -> dict[str, object]:
    """Tokens as [hex, log probability, [[hex, log probability], …]]: they need not be valid UTF-8 on their own."""
    tokens = [
        [choice.token.hex(), choice.logprob, [[token.hex(), logprob] for token, logprob in choice.top]]
        for choice in generation.tokens
    ]
    return {"text": generation.text, "tokens": tokens}


def _generation(entry: object) -> Generation:
    fields = mapping(entry)
    tokens = tuple(choice for item in values(fields.get("tokens")) if (choice := _choice(values(item))))
    return Generation(text=text(fields.get("text")) or "", tokens=tokens)


def _choice(item: tuple[object, ...]) -> TokenChoice | None:
    if len(item) != 3:  # noqa: PLR2004
        return None
    top = [values(pair) for pair in values(item[2])]
    return TokenChoice(
        token=_bytes(item[0]),
        logprob=number(item[1]) or 0.0,
        top=tuple((_bytes(pair[0]), number(pair[1]) or 0.0) for pair in top if len(pair) == 2),  # noqa: PLR2004
    )


def _bytes(value: object) -> bytes:
    try:
        return bytes.fromhex(text(value) or "")
    except ValueError:
        return b""
