"""`smoke`: proofs on a live server, with losslessness against whatever reference can be had."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from dflashctl.commands.bench_save import write_text
from dflashctl.commands.instance_profile import same_file, server_profile
from dflashctl.commands.live_server import api_key, live_server
from dflashctl.commands.output_files import require_outputs
from dflashctl.commands.second_server import require_profile
from dflashctl.commands.smoke_reference import reference, saved_run
from dflashctl.core.engine import EngineBuild
from dflashctl.core.errors import ExitCode, UsageProblem
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.lossless import NEAR_TIE_NATS
from dflashctl.core.ranges import Range
from dflashctl.core.report import Outcome, Report, to_json
from dflashctl.core.smoke import Proof, ProofStatus, SmokeOptions, SmokeResult
from dflashctl.core.spelling import nearest
from dflashctl.engines import ENGINES
from dflashctl.proofs import PROOFS
from dflashctl.proofs.client import Expected
from dflashctl.proofs.references import record
from dflashctl.proofs.runner import ProofSettings, connect, run_all
from dflashctl.supervise import stops_interrupt

if TYPE_CHECKING:
    from dflashctl.commands.live_server import LiveServer
    from dflashctl.core.profile import Profile
    from dflashctl.env import Env
    from dflashctl.proofs.client import Client

_A_DAY_S = 86400


def smoke(env: Env, options: SmokeOptions) -> Report:
    """All proofs on one server: exit 1 when one fails, 3 when the instance is not up, 69 when nothing answers.

    Ctrl-C, TERM and HUP end it with 130; a server of its own is stopped.
    """
    with stops_interrupt():
        return _smoke(env, options)


def _smoke(env: Env, options: SmokeOptions) -> Report:
    _check(env, options)
    promised = None if options.profile is None else env.profiles.load(options.profile).profile
    server = live_server(env, options.name, options.url)
    if options.against_no_spec:
        require_profile(env, server, options.profile)
    settings = _settings(env, server, options, promised)
    client = connect(env.web, env.clock, server.url, settings)
    if options.save_reference is not None:
        _require_plain(client)
    with ExitStack() as stack:
        told = reference(env, server, client, options, settings, stack)
        if told is not None:
            client = replace(client, reference=told)
        bugs: list[Exception] = []
        proofs = run_all(client, settings, env.notify, bugs.append)
    saved = _save(env, client, options.save_reference) if options.save_reference else None
    return replace(_report(server, client, proofs, saved), bugs=tuple(bugs))


def _check(env: Env, options: SmokeOptions) -> None:
    known = [module.ID for module in PROOFS]
    for name in options.only:
        if name not in known:
            raise UsageProblem(f"there is no proof {name!r}", hint=nearest(name, known))
    Range(option="--near-tie", least=0).require(options.near_tie_nats)
    Range(option="--timeout", least=0, above=True, most=_A_DAY_S).require(options.timeout_s)
    given = [options.against_no_spec, options.against is not None, options.reference is not None]
    if sum(given) > 1:
        raise UsageProblem("--against-no-spec, --against and --reference exclude each other")
    if options.reference is not None:
        saved_run(env, options.reference)
    if options.save_reference is not None:
        require_outputs([("--save-reference", env.cwd / options.save_reference)])


def _settings(env: Env, server: LiveServer, options: SmokeOptions, promised: Profile | None) -> ProofSettings:
    """What the instance was started for; a profile that is not its own says which model it has to serve instead."""
    served = server.served
    expected = Expected(
        near_tie_nats=NEAR_TIE_NATS if options.near_tie_nats is None else options.near_tie_nats
    )
    if served is not None:
        expected = replace(
            expected,
            model=served.served_model_name,
            speculation=served.draft is not None,
            block_size=served.block_size,
        )
    if promised is not None and not _is_own(env, server, options.profile):
        expected = replace(expected, model=_served_name(promised))
    return ProofSettings(
        expected=expected,
        api_key=api_key(env, options.api_key_env),
        timeout_s=options.timeout_s,
        quick=options.quick,
        only=options.only,
    )


def _served_name(profile: Profile) -> str:
    """As the profile's raw arguments have it, too."""
    engine = ENGINES[profile.engine.name.value]
    return engine.effective(profile, (), EngineBuild(release=engine.NEWEST_RELEASE)).served_name


def _is_own(env: Env, server: LiveServer, profile: str | None) -> bool:
    own = server_profile(env, server)
    return own is not None and profile is not None and same_file(env, own, profile)


def _require_plain(client: Client) -> None:
    """Only texts without speculation can be a reference."""
    if client.facts.speculates and not client.facts.per_request_speculation:
        raise UsageProblem(
            "this server speculates, so its texts are no reference",
            hint="dflashctl up PROFILE --set speculative.algorithm=NONE, then smoke --save-reference",
        )


def _save(env: Env, client: Client, path: str) -> str:
    """Record this server's own texts."""
    write_text(env.cwd / path, json.dumps(to_json(record(client))) + "\n")
    return path


def _report(server: LiveServer, client: Client, proofs: tuple[Proof, ...], saved: str | None) -> Report:
    result = SmokeResult(
        url=server.url,
        instance=server.name,
        model=client.facts.model,
        engine_version=client.facts.version,
        block_size=client.facts.block_size,
        proofs=proofs,
        saved_reference=saved,
    )
    failed = [proof for proof in proofs if proof.status is ProofStatus.FAIL]
    bench = "dflashctl bench" + (f" {server.name}" if server.name else f" --url {server.url}")
    logs = ("dflashctl logs" + f" {server.name}",) if server.name else ()
    return Report(
        command="smoke",
        data=result,
        outcome=Outcome.FAILED if failed else Outcome.OK,
        exit_code=ExitCode.CHECK_FAILED if failed else ExitCode.OK,
        findings=tuple(failure_finding(proof) for proof in failed),
        next_steps=logs if failed else (bench,),
    )


def failure_finding(proof: Proof) -> Finding:
    """A failed proof as a finding, for scripts that only read those."""
    return Finding(
        id=f"smoke.{proof.id}",
        severity=Severity.ERROR,
        summary=f"{proof.title}: {proof.why}",
        detail="\n".join(proof.evidence) or None,
    )
