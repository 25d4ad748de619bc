"""Where greedy texts without speculation come from: the same engine, another server, or a saved run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError
from dflashctl.core.reference_run import ReferenceRun, SavedPrompt
from dflashctl.core.smoke import ReferenceFailed
from dflashctl.proofs.generation import greedy
from dflashctl.proofs.prompts import losslessness_prompts

if TYPE_CHECKING:
    from dflashctl.core.lossless import Generation
    from dflashctl.proofs.client import Client
    from dflashctl.proofs.prompts import Prompt

_RUNS = 2


@dataclass(frozen=True, kw_only=True)
class SameEngine:
    """The server under proof, asked to leave speculation out of one request."""

    client: Client
    label: str = "the same server with speculation off for the request"

    def generations(self, prompt: Prompt, /) -> tuple[Generation, ...]:
        runs = 1 if self.client.brief else _RUNS
        return tuple(greedy(self.client, prompt, speculation=False) for _ in range(runs))


@dataclass(frozen=True, kw_only=True)
class OtherServer:
    """A second server, of the same target, that runs without speculation; its own failures are ReferenceFailed."""

    client: Client
    label: str = "a second server without speculation"

    def generations(self, prompt: Prompt, /) -> tuple[Generation, ...]:
        try:
            return _twice(self.client, prompt)
        except DflashError as error:
            raise ReferenceFailed(
                f"the reference at {self.client.facts.base_url} failed: {error.message}"
            ) from error


def _twice(client: Client, prompt: Prompt) -> tuple[Generation, ...]:
    return tuple(greedy(client, prompt) for _ in range(_RUNS))


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """A run that was saved earlier; it does not know prompts whose text has changed since."""

    run: ReferenceRun
    label: str = "a saved reference run"

    def generations(self, prompt: Prompt, /) -> tuple[Generation, ...]:
        saved = (entry for entry in self.run.prompts if (entry.id, entry.prompt) == (prompt.id, prompt.text))
        return next((entry.generations for entry in saved), ())


def record(client: Client) -> ReferenceRun:
    """The texts of all losslessness prompts without speculation, each twice, as this server gives them now."""
    switches = client.facts.per_request_speculation
    plain = SameEngine(client=client).generations if switches else partial(_twice, client)
    return ReferenceRun(
        model=client.facts.model,
        engine_version=client.facts.version,
        prompts=tuple(
            SavedPrompt(id=prompt.id, prompt=prompt.text, generations=plain(prompt))
            for prompt in losslessness_prompts(reasoning=client.facts.reasoning_parser is not None)
        ),
    )
