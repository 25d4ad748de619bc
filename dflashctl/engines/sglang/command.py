"""Assembles the command: profile, raw arguments and environment, translated for the build and judged by the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dflashctl.core.engine import EngineCommand, Translation
from dflashctl.core.findings import Finding, Severity
from dflashctl.core.profile import Algorithm
from dflashctl.engines.sglang import catalogue
from dflashctl.engines.sglang.environment import fit_environment
from dflashctl.engines.sglang.intent import BY_FLAG, profile_wishes
from dflashctl.engines.sglang.known_models import facts_of
from dflashctl.engines.sglang.rules import judge
from dflashctl.engines.sglang.situation import Situation
from dflashctl.engines.sglang.translate import modernised, translate
from dflashctl.engines.sglang.wish import translations
from dflashctl.engines.sglang.words import read_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dflashctl.core.engine import EngineRequest
    from dflashctl.core.machine import Machine
    from dflashctl.engines.sglang.catalogue import Catalogue
    from dflashctl.engines.sglang.environment import Environment
    from dflashctl.engines.sglang.wish import Wish

MODULE = ("-m", "sglang.launch_server")
_MODEL_FLAGS = (
    "--model-path",
    "--model",
    "--revision",
    "--speculative-draft-model-path",
    "--speculative-draft-model",
    "--speculative-draft-model-revision",
)
_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.NOTE)


def command(request: EngineRequest, /) -> EngineCommand:
    """The complete command for `request.build`, with each change and every finding; an error finding refuses it."""
    have = catalogue.of_build(request.build.release, request.build.options)
    environment = fit_environment(request.profile.environment, have.release, known=request.build.known)
    extra = read_words(request.profile.extra_args, have, "profile: extra_args")
    raw = read_words(request.raw_args, have, "after --")
    own = profile_wishes(request)
    given = (*extra.wishes, *raw.wishes)
    translated = translate((*_without_rivals(own, given), *environment.wishes, *given), have)
    judgement = judge(_situation(request, have, translated.granted, environment))
    arguments = tuple(one.argument() for one in translated.granted)
    findings = (
        *_build_findings(request),
        *judgement.findings,
        *extra.findings,
        *raw.findings,
        *(_loose(word) for word in (*extra.loose, *raw.loose)),
        *(_named_twice(one) for one in given if one.flag in _MODEL_FLAGS),
        *environment.findings,
        *translated.findings,
    )
    return EngineCommand(
        module_argv=(*MODULE, *(word for argument in arguments for word in argument.words)),
        env=environment.variables,
        arguments=arguments,
        resolved=judgement.resolved,
        translations=_changes(translated.granted, translated.dropped, environment.translations),
        findings=tuple(sorted(findings, key=lambda finding: _SEVERITIES.index(finding.severity))),
    )


def _without_rivals(own: tuple[Wish, ...], given: tuple[Wish, ...]) -> tuple[Wish, ...]:
    """The profile's wishes without those that a raw argument replaces under another name."""
    paths = {BY_FLAG[one.flag].path for one in modernised(given) if one.flag in BY_FLAG}
    return tuple(one for one in own if one.flag not in BY_FLAG or BY_FLAG[one.flag].path not in paths)


def _named_twice(one: Wish) -> Finding:
    return Finding(
        id="model_in_raw_arguments",
        severity=Severity.ERROR,
        summary=f"{one.flag} cannot be given as a raw argument: fetching, planning and proofs go by the profile's models",
        fix="--set target.repo=... or --set draft.repo=... (with revision), or another profile",
    )


def _changes(
    granted: tuple[Wish, ...], dropped: tuple[Wish, ...], environment: Sequence[Translation]
) -> tuple[Translation, ...]:
    return (*translations(granted, dropped), *environment)


def _situation(
    request: EngineRequest, have: Catalogue, granted: tuple[Wish, ...], environment: Environment
) -> Situation:
    profile = request.profile
    return Situation(
        release=request.build.local_version or request.build.release,
        have=have,
        options={one.flag: one.values for one in modernised(granted)},
        environment={**request.inherited, **dict(environment.variables)},
        capabilities=_capabilities(request.machine),
        wants_dflash=profile.speculative.algorithm is Algorithm.DFLASH,
        target=facts_of(profile.target, request.target_facts),
        draft=facts_of(profile.draft, request.draft_facts),
        target_name=profile.target.label,
        model_hooks=dict(request.build.model_hooks) if request.build.model_hooks is not None else None,
    )


def _capabilities(machine: Machine) -> tuple[tuple[int, int], ...]:
    return tuple(
        sorted({gpu.compute_capability for gpu in machine.gpus if gpu.compute_capability is not None})
    )


def _build_findings(request: EngineRequest) -> tuple[Finding, ...]:
    build = request.build
    near = catalogue.nearest(build.release)
    if build.known and near == build.release:
        return ()
    shown = build.local_version or build.release
    if build.options is not None:
        summary = (
            f"SGLang {shown} is not a released build: its own options are used, its rules are those of {near}"
        )
        return (Finding(id="engine_build_changed", severity=Severity.NOTE, summary=summary),)
    summary = f"SGLang {shown} is not among the known releases ({catalogue.span(catalogue.releases())}): judged as {near}"
    fix = "run with the interpreter that has it (--python PATH), so that it can be asked for its options"
    return (Finding(id="engine_build_unknown", severity=Severity.WARNING, summary=summary, fix=fix),)


def _loose(word: str) -> Finding:
    return Finding(
        id="word_without_option",
        severity=Severity.ERROR,
        summary=f"{word!r} is no option and belongs to none",
        fix="options begin with --; a value follows its option",
    )
