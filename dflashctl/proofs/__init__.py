"""Proofs on a live server, one a module; PROOFS lists them in the order in which they run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dflashctl.proofs import (
    abort,
    answers,
    chat,
    concurrency,
    context_overflow,
    degenerate,
    health,
    json_schema,
    lossless,
    models,
    prefix_cache,
    reasoning,
    sampling,
    speculation,
    stop_strings,
    stream,
    tool_call,
    usage,
)

if TYPE_CHECKING:
    from dflashctl.core.smoke import Passed, Skipped
    from dflashctl.proofs.client import Client


class ProofModule(Protocol):
    """What a proof's module offers; `QUICK` ones also run right after a start.

    `applies` returns why the proof has no meaning for this server, None when it has. `run` raises ProofFailed
    (or any DflashError) when the server fails it.
    """

    ID: str
    TITLE: str
    QUICK: bool

    def applies(self, client: Client, /) -> str | None: ...

    def run(self, client: Client, /) -> Passed | Skipped: ...


PROOFS: tuple[ProofModule, ...] = (
    models,
    health,
    chat,
    stream,
    usage,
    speculation,
    lossless,
    context_overflow,
    answers,
    degenerate,
    stop_strings,
    reasoning,
    tool_call,
    json_schema,
    sampling,
    prefix_cache,
    concurrency,
    abort,
)
