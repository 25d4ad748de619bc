"""Where `smoke` gets the texts without speculation that it was told to compare with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.second_server import without_speculation
from dflashctl.core.errors import DflashError, Unavailable, UsageProblem
from dflashctl.core.json_text import json_loads
from dflashctl.core.model_names import Likeness, likeness
from dflashctl.core.reference_run import read_reference
from dflashctl.proofs import lossless
from dflashctl.proofs.client import Expected
from dflashctl.proofs.references import OtherServer, SavedRun
from dflashctl.proofs.runner import connect, select

if TYPE_CHECKING:
    from contextlib import ExitStack

    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.reference_run import ReferenceRun
    from dflashctl.core.smoke import SmokeOptions
    from dflashctl.env import Env
    from dflashctl.proofs.client import Client, Reference
    from dflashctl.proofs.runner import ProofSettings


def saved_run(env: Env, path: str) -> ReferenceRun:
    """The run in that file; UsageProblem when there is none."""
    try:
        document = json_loads((env.cwd / path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageProblem(f"the reference run {path!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageProblem(f"the reference run {path!r} is not JSON: {error}") from error
    return read_reference(document, path)


def reference(
    env: Env,
    server: LiveServer,
    client: Client,
    options: SmokeOptions,
    settings: ProofSettings,
    stack: ExitStack,
) -> Reference | None:
    """What was asked for, None to leave it to the server under proof; `stack` stops a server started for it.

    UsageProblem when it speculates or serves another model, Unavailable when it is no server that can be asked.
    """
    if options.reference is not None:
        run = saved_run(env, options.reference)
        names = (run.model,) if run.model else ()
        said = _same_model(client, names, f"the reference run {options.reference}")
        return SavedRun(run=run, label=f"the saved reference run {options.reference}{said}")
    if options.against is not None:
        return _other(env, client, options.against, settings)
    if options.against_no_spec and _is_used(client, settings):
        own = stack.enter_context(without_speculation(env, server, options.profile))
        return _other(env, client, own.url, settings)
    return None


def _is_used(client: Client, settings: ProofSettings) -> bool:
    """Whether a proof will compare with it: starting a whole server for nothing takes minutes."""
    return lossless in select(settings) and client.facts.speculates is not False


def _other(env: Env, client: Client, url: str, settings: ProofSettings) -> OtherServer:
    base = url.rstrip("/").removesuffix("/v1")
    try:
        other = connect(env.web, env.clock, base, replace(settings, expected=Expected()))
    except DflashError as error:
        raise Unavailable(f"the reference at {url} cannot be used: {error.message}") from error
    facts = other.facts
    if not facts.models:
        raise Unavailable(
            f"the reference at {url} cannot be used: {facts.no_model}",
            hint="--against takes the URL of a server without speculation",
        )
    if facts.speculates:
        raise UsageProblem(
            f"the server at {url} speculates, so it is no reference", hint="start it with algorithm NONE"
        )
    said = _same_model(client, facts.names, f"the reference at {url}")
    if client.facts.model in facts.models:
        other = replace(other, facts=replace(facts, model=client.facts.model))
    return OtherServer(client=other, label=f"the server without speculation at {url}{said}")


def _same_model(client: Client, names: tuple[str, ...], what: str) -> str:
    """Words for the label when the names differ in form; UsageProblem when they name another model."""
    like = likeness(client.facts.names, names)
    if like is Likeness.SAME:
        return ""
    if like is Likeness.ALIKE:
        return f", where the model is called {names[0]!r}"
    raise UsageProblem(
        f"{what} serves {names[0]!r}, not {client.facts.model!r}, so its texts prove nothing",
        hint="where both are the same weights, serve them under one name: --served-model-name",
    )
