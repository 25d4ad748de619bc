"""JinjaTemplates: chat templates rendered in Jinja's sandbox, with the names that model templates expect."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from dflashctl.core.errors import Permanent, UsageProblem
from dflashctl.core.json_text import json_loads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_HASH_DIGITS = 16


class JinjaTemplate:
    """`special` are the tokenizer's special tokens by name, which templates refer to."""

    def __init__(self, source: str, special: Mapping[str, str], origin: str) -> None:
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols], autoescape=False
        )
        environment.filters["tojson"] = _tojson
        environment.globals.update(raise_exception=_refuse, strftime_now=_now)
        self._template = environment.from_string(source)
        self._special = dict(special)
        self._origin = origin
        self.hash = hashlib.sha256(source.encode()).hexdigest()[:_HASH_DIGITS]

    def render(self, messages: Sequence[tuple[str, str]], options: Mapping[str, object]) -> str:
        from jinja2 import TemplateError

        try:
            return self._template.render(
                messages=[{"role": role, "content": content} for role, content in messages],
                add_generation_prompt=True,
                **self._special,
                **options,
            )
        except TemplateError as error:
            raise Permanent(
                f"the chat template of {self._origin} refuses the conversation: {error}"
            ) from error


class JinjaTemplates:
    def load(self, folder: Path) -> JinjaTemplate:
        config = _config(folder / "tokenizer_config.json")
        own = folder / "chat_template.jinja"
        source = (
            own.read_text(encoding="utf-8") if os.path.isfile(own) else _named(config.get("chat_template"))
        )
        if source is None:
            raise UsageProblem(
                f"{str(folder)!r} has no chat template", hint="--tokenizer FOLDER of the model, or --api chat"
            )
        special = {
            name: word
            for name in ("bos_token", "eos_token", "pad_token", "unk_token")
            if (word := _word(config.get(name)))
        }
        return JinjaTemplate(source, special, str(folder))


def _config(path: Path) -> dict[str, object]:
    try:
        found = json_loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Permanent(f"{path} cannot be read: {error}") from error
    return found if isinstance(found, dict) else {}


def _named(value: object) -> str | None:
    """The template, or the one called "default" of a list of named ones."""
    if isinstance(value, str):
        return value
    named = (
        {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        if isinstance(value, list)
        else {}
    )
    found = named.get("default")
    return found if isinstance(found, str) else None


def _word(value: object) -> str | None:
    """A special token, written as itself or as an object with `content`."""
    found = value.get("content") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None


def _tojson(value: object, indent: int | None = None, *, ensure_ascii: bool = False) -> str:
    """Templates expect text as it is, not Jinja's HTML-safe escapes."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)


def _now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)
