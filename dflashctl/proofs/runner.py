"""Run proofs on one server and collect what each of them found."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dflashctl.core.errors import DflashError, Unavailable
from dflashctl.core.progress import Progress
from dflashctl.core.replies import parse_json
from dflashctl.core.smoke import (
    Passed,
    Proof,
    ProofFailed,
    ProofStatus,
    ReferenceFailed,
    ServerFacts,
    Skipped,
    read_facts,
)
from dflashctl.proofs import PROOFS
from dflashctl.proofs.client import Client, Expected
from dflashctl.proofs.references import SameEngine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dflashctl.ports.clock import Clock
    from dflashctl.ports.web import Web
    from dflashctl.proofs import ProofModule
    from dflashctl.proofs.client import Reference

_OK = 200


@dataclass(frozen=True, kw_only=True)
class ProofSettings:
    """What a run of proofs can be told; `only` names proofs by id, empty means all (or all quick ones)."""

    expected: Expected = field(default_factory=Expected)
    api_key: str | None = None
    timeout_s: float = 120.0
    quick: bool = False
    only: tuple[str, ...] = ()


def _silent(_event: Progress) -> None:
    """Drop progress."""


def _forget(_error: Exception) -> None:
    """Drop a bug, for callers to whom the broken proof says enough."""


def prove(
    web: Web,
    clock: Clock,
    base_url: str,
    settings: ProofSettings,
    *,
    reference: Reference | None = None,
    notify: Callable[[Progress], None] = _silent,
) -> tuple[Proof, ...]:
    """All proofs that `settings` ask for, in order, on the server at `base_url`; a failure does not stop the rest.

    Raises Unavailable when nothing answers there.
    """
    return run_all(connect(web, clock, base_url, settings, reference=reference), settings, notify)


def connect(
    web: Web, clock: Clock, base_url: str, settings: ProofSettings, *, reference: Reference | None = None
) -> Client:
    """A client that knows the server's facts; where the engine can switch speculation off, it is the reference."""
    headers = {"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {}
    client = Client(
        web=web,
        clock=clock,
        facts=look(web, base_url, headers),
        nonce=secrets.token_hex(8),
        timeout_s=settings.timeout_s,
        headers=headers,
        expected=settings.expected,
        reference=reference,
        brief=settings.quick,
    )
    if reference is None and client.facts.per_request_speculation:
        return replace(client, reference=SameEngine(client=client))
    return client


def look(web: Web, base_url: str, headers: Mapping[str, str]) -> ServerFacts:
    """What the server says about itself; Unavailable when it does not answer at all."""
    base = base_url.rstrip("/")
    models = web.request("GET", f"{base}/v1/models", headers=headers)
    if models.status == 0:
        raise Unavailable(f"no server answers at {base}: {models.problem}", hint="dflashctl status")
    if models.status in {401, 403}:
        raise ProofFailed(
            f"{base} refuses the API key (status {models.status})",
            hint="set DFLASHCTL_API_KEY to the server's key",
        )
    info = web.request("GET", f"{base}/server_info", headers=headers, timeout_s=30.0)
    facts = read_facts(
        base,
        parse_json(models.body, "/v1/models") if models.status == _OK else None,
        parse_json(info.body, "/server_info") if info.status == _OK else None,
    )
    return replace(facts, models_status=models.status)


def run_all(
    client: Client,
    settings: ProofSettings,
    notify: Callable[[Progress], None] = _silent,
    broke: Callable[[Exception], None] = _forget,
) -> tuple[Proof, ...]:
    """The proofs' outcomes, one progress event before each; `broke` gets the bugs that ended some of them."""
    chosen = select(settings)
    proofs = []
    for index, module in enumerate(chosen):
        notify(Progress(step="smoke", text=module.TITLE, done=index, total=len(chosen), unit="proofs"))
        proofs.append(run_one(module, client, broke))
    notify(
        Progress(
            step="smoke", text="proofs done", done=len(chosen), total=len(chosen), unit="proofs", final=True
        )
    )
    return tuple(proofs)


def select(settings: ProofSettings) -> Sequence[ProofModule]:
    """The modules to run; unknown ids are the caller's to refuse."""
    if settings.only:
        return [module for module in PROOFS if module.ID in settings.only]
    return [module for module in PROOFS if module.QUICK or not settings.quick]


def run_one(module: ProofModule, client: Client, broke: Callable[[Exception], None] = _forget) -> Proof:
    """One proof; `broke` gets what it raised that no proof may raise."""
    started = client.clock.monotonic()
    try:
        reason = module.applies(client)
        if reason is not None:
            return _proof(module, ProofStatus.SKIPPED, reason)
        outcome = module.run(client)
    except ReferenceFailed:
        raise
    except ProofFailed as error:
        proof = _proof(module, ProofStatus.FAIL, _with_hint(error), error.evidence)
    except DflashError as error:
        proof = _proof(module, ProofStatus.FAIL, _with_hint(error))
    except Exception as error:  # noqa: BLE001 - the single-check runner: one broken proof must not hide the others
        broke(error)
        said = f"a bug in dflashctl, not of the server: {type(error).__name__}: {error}"
        proof = _proof(module, ProofStatus.BROKEN, said)
    else:
        proof = _outcome(module, outcome)
    return replace(proof, elapsed_s=round(client.clock.monotonic() - started, 3))


def _outcome(module: ProofModule, outcome: Passed | Skipped) -> Proof:
    if isinstance(outcome, Skipped):
        return _proof(module, ProofStatus.SKIPPED, outcome.reason)
    return _proof(module, ProofStatus.PASS, outcome.note, outcome.evidence)


def _with_hint(error: DflashError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


def _proof(module: ProofModule, status: ProofStatus, why: str, evidence: tuple[str, ...] = ()) -> Proof:
    return Proof(id=module.ID, title=module.TITLE, status=status, why=why, evidence=evidence)
