"""Text to tokens and back, and the chat template, from a model folder's tokenizer files."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, NoReturn

from dflashctl.reference.config import token_ids
from dflashctl.reference.errors import BadRequestError, StartError
from dflashctl.reference.weights import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from jinja2 import Template


class Tokenizer:
    """The target's tokenizer. ``eos_token_ids`` end a generation."""

    def __init__(self, folder: Path, eos_token_ids: frozenset[int]) -> None:
        import tokenizers

        path = folder / "tokenizer.json"
        if not path.is_file():
            raise StartError(f"model folder {str(folder)!r} has no tokenizer.json")
        self._tokenizer = tokenizers.Tokenizer.from_file(str(path))
        options = read_json(folder, "tokenizer_config.json")
        self._template = _compile(_template_source(folder, options), str(folder))
        self._special = {
            name: _token_text(options.get(name)) for name in ("bos_token", "eos_token", "pad_token")
        }
        named = self._tokenizer.token_to_id(self._special["eos_token"])
        self.eos_token_ids = eos_token_ids | token_ids(named) | _generation_eos(folder)

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of ``text``, in which special tokens may be written out."""
        return tuple(self._tokenizer.encode(text).ids)

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ``tokens``; bytes that are no whole character show as U+FFFD."""
        return str(self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens))

    def token_id(self, token: str) -> int | None:
        """Return the number of ``token``, or None when the vocabulary has no such token."""
        found: int | None = self._tokenizer.token_to_id(token)
        return found

    def token(self, token_id: int) -> str:
        """Return the vocabulary's name of a token."""
        return self._tokenizer.id_to_token(token_id) or ""

    def chat(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the prompt's tokens for ``messages``; ``options`` are the template's extra variables."""
        import jinja2

        if self._template is None:
            raise BadRequestError("this model has no chat template; use /v1/completions or /generate")
        variables = {**self._special, "add_generation_prompt": True, **options, "messages": messages}
        try:
            return self.encode(self._template.render(variables))
        except (jinja2.TemplateError, TypeError) as error:
            raise BadRequestError(f"the chat template refuses these messages: {error}") from error


def _compile(source: str | None, where: str) -> Template | None:
    if source is None:
        return None
    from jinja2 import TemplateSyntaxError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().astimezone().strftime(form)
    environment.filters["tojson"] = lambda value, **how: json.dumps(value, ensure_ascii=False, **how)
    try:
        return environment.from_string(source)
    except TemplateSyntaxError as error:
        raise StartError(f"the chat template of {where!r} does not parse: {error}") from error


def _refuse(message: str) -> NoReturn:
    raise BadRequestError(message)


def _template_source(folder: Path, options: Mapping[str, Any]) -> str | None:
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8")
    inline = options.get("chat_template")
    return inline if isinstance(inline, str) else None


def _token_text(value: object) -> str:
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _generation_eos(folder: Path) -> frozenset[int]:
    if not (folder / "generation_config.json").is_file():
        return frozenset()
    return token_ids(read_json(folder, "generation_config.json").get("eos_token_id"))
