"""ChatTemplates: a model's chat template, applied here instead of by the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class ChatTemplate(Protocol):
    @property
    def hash(self) -> str:
        """The first 16 hexadecimal digits of the template's SHA-256."""

    def render(self, messages: Sequence[tuple[str, str]], options: Mapping[str, object]) -> str:
        """The prompt of a conversation up to the assistant's turn; Permanent when the template refuses it."""


class ChatTemplates(Protocol):
    def load(self, folder: Path) -> ChatTemplate:
        """The template of a model's or tokenizer's folder; UsageProblem when it has none."""
